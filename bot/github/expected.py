"""What a pattern of `merge: required:` stands for: what it matched on the base branch's newest green commit.

A pattern such as `*/pr-head` is content with the first job that is green, while others have not begun. So the names
that it stood for last are required as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from bot.config.types import matches
from bot.github.errors import is_not_found
from bot.github.refs import first_parents
from bot.github.signals import signals_of
from bot.payload import Payload
from bot.required import Expected, Signal, State

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.ours import Ours

PULLS = "/repos/{+repo}/commits/{sha}/pulls"
MOST_COMMITS = 5
"""Commits of the base branch that are looked at, the newest first."""
_WILD = frozenset("*?[")


def is_pattern(name: str) -> bool:
    """Say whether an entry of `required` may match several names."""
    return not _WILD.isdisjoint(name)


async def expected_of(
    github: GitHub, repository: str, branch: str, required: Sequence[str], ours: Ours
) -> tuple[Expected, ...]:
    """Return for each pattern what it matched on the newest commit of a branch where all that it matched was green.

    CI may report on the heads of pull requests under other names than on the branch. So beside each commit the head of
    the pull request that brought it is looked at. Requests: none without a pattern; else one, and for each commit that
    is looked at up to five; one commit is enough as a rule, and what has not changed costs nothing of the quota.
    """
    missing = [name for name in required if is_pattern(name)]
    found: list[Expected] = []
    for sha in await _commits(github, repository, branch) if missing else ():
        found += _matched(missing, await signals_of(github, repository, sha, ours.on(branch)), sha)
        missing = _without(missing, found)
        head = await _head_that_brought(github, repository, branch, sha) if missing else None
        if head is not None:
            found += _matched(missing, await signals_of(github, repository, head, ours), head)
            missing = _without(missing, found)
        if not missing:
            break
    return tuple(found)


async def _commits(github: GitHub, repository: str, branch: str) -> list[str]:
    try:
        return [commit.sha for commit in (await first_parents(github, repository, branch))[:MOST_COMMITS]]
    except Exception as error:
        if is_not_found(error):  # somebody deleted the branch
            return []
        raise


async def _head_that_brought(github: GitHub, repository: str, branch: str, sha: str) -> str | None:
    """Return the head of the pull request that was merged as this commit, None where there is none."""
    for item in await github.getitem(PULLS, url_vars={"repo": repository, "sha": sha}):
        pull = Payload(item, "pull request")
        if pull.text("merge_commit_sha") == sha and pull.text("merged_at") and pull.text("base", "ref") == branch:
            return pull.string("head", "sha")
    return None


def _matched(patterns: Iterable[str], signals: Sequence[Signal], sha: str) -> list[Expected]:
    """Return what patterns match on a commit, of those where all of it is green."""
    found = []
    for pattern in patterns:
        theirs = [signal for signal in signals if not signal.ours and matches([pattern], signal.name)]
        if theirs and all(signal.state is State.GREEN for signal in theirs):
            found.append(Expected(pattern, tuple(sorted({signal.name for signal in theirs})), sha))
    return found


def _without(patterns: Iterable[str], found: Iterable[Expected]) -> list[str]:
    known = {one.pattern for one in found}
    return [pattern for pattern in patterns if pattern not in known]
