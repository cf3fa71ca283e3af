"""Find the names that a pattern in `merge: required:` matched on the base branch's newest commits.

A pattern such as `*/pr-head` would be satisfied by the first green job, before others have begun. So these names are
required as well. `bot.github.commits.required.stands_for` decides which of them count.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING

from bot.core.events import Payload
from bot.core.patterns import is_glob
from bot.github.commits.refs import first_parents
from bot.github.commits.required import BaseCommit, Expected, stands_for
from bot.github.commits.signals import signals_of
from bot.github.errors import is_not_found

if TYPE_CHECKING:
    from bot.github.client import GitHub
    from bot.github.commits.ours import Ours

PULLS = "/repos/{+repo}/commits/{sha}/pulls"
MOST_COMMITS = 5
"""Commits of the base branch that are read, newest first."""


async def expected_of(
    github: GitHub, repository: str, branch: str, required: Sequence[str], own_reports: Ours
) -> tuple[Expected, ...]:
    """Return the names that each pattern matched on the newest commits of a branch.

    CI may report on the heads of pull requests under other names than on the branch. So for each commit, the bot also
    reads the head of the pull request that was merged as this commit. It stops when every pattern has a settled commit,
    at the latest after `MOST_COMMITS`. Without a pattern it sends no request; otherwise one to five, and up to seven
    for each commit if each list has one page. Unchanged answers cost no quota.
    """
    patterns = [name for name in required if is_glob(name)]
    if not patterns:
        return ()
    moment = github.now()
    commits: list[BaseCommit] = []
    unsettled = set(patterns)
    async for commit in _base_commits(github, repository, branch, own_reports):
        commits.append(commit)
        unsettled = {pattern for pattern in unsettled if not commit.is_settled(pattern, moment)}
        if not unsettled:
            break
    return tuple(expected for pattern in patterns for expected in stands_for(pattern, commits, moment))


async def _base_commits(github: GitHub, repository: str, branch: str, own_reports: Ours) -> AsyncIterator[BaseCommit]:
    """Yield the newest commits, each followed by the pull request's head that became it; send requests on demand."""
    for sha in await _commits(github, repository, branch):
        yield BaseCommit(sha, tuple(await signals_of(github, repository, sha, own_reports.on(branch))))
        head = await _merged_head(github, repository, branch, sha)
        if head is not None:
            yield BaseCommit(head, tuple(await signals_of(github, repository, head, own_reports)))


async def _commits(github: GitHub, repository: str, branch: str) -> list[str]:
    try:
        newest = await first_parents(github, repository, branch, at_least=MOST_COMMITS)
        return [commit.sha for commit in newest[:MOST_COMMITS]]
    except Exception as error:
        if is_not_found(error):  # somebody deleted the branch
            return []
        raise


async def _merged_head(github: GitHub, repository: str, branch: str, sha: str) -> str | None:
    """Return the head of the pull request that was merged as this commit, None if there is none."""
    async for item in github.getiter(PULLS, url_vars={"repo": repository, "sha": sha}):
        pull = Payload(item, "pull request")
        if pull.text("merge_commit_sha") == sha and pull.text("merged_at") and pull.text("base", "ref") == branch:
            return pull.string("head", "sha")
    return None
