"""Read from GitHub which files a commit of a branch changes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.core.events import Payload
from handlers.changed_files import texts
from handlers.changed_files.changes import SHOWN_OF_SHA, ChangedFiles, Changes, UnknownChanges, changed_names

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.github.client import GitHub

MOST_COMPARED = 300
"""GitHub shows no more files of a comparison (https://docs.github.com/rest/commits/commits#compare-two-commits)."""
NO_COMMIT = "0" * 40
"""The SHA by which GitHub says that a branch did not exist before a push, or does not exist after it."""


@dataclass(frozen=True, slots=True)
class BranchPush:
    """A push to a branch: the SHA of its tip before the push, and after it."""

    old_sha: str
    new_sha: str


async def read_parent(github: GitHub, repository: str, sha: str) -> str:
    """Return the SHA of a commit's first parent, empty if it has none, with one request. Raises GitHub's errors."""
    answer = await github.getitem("/repos/{+repo}/git/commits/{sha}", url_vars={"repo": repository, "sha": sha})
    parents = [parent.string("sha") for parent in Payload(answer, "commit").items("parents")]
    return parents[0] if parents else ""


async def read_pushes(github: GitHub, repository: str, branch: str) -> Sequence[BranchPush]:
    """Return the newest 100 pushes to a branch, or to all branches if `branch` is empty, with one request.

    https://docs.github.com/rest/repos/repos#list-repository-activities. Raises GitHub's errors.
    """
    url, url_vars = "/repos/{+repo}/activity?per_page=100", {"repo": repository}
    if branch:
        url, url_vars = f"{url}&ref={{ref}}", {**url_vars, "ref": f"refs/heads/{branch}"}
    pushes = [Payload(push, "activity") for push in await github.getitem(url, url_vars=url_vars)]
    return [BranchPush(push.string("before"), push.string("after")) for push in pushes]


async def read_compared(github: GitHub, repository: str, parent: str, sha: str) -> Changes:
    """Return the changes of a commit compared with its parent, with one request. Raises GitHub's errors."""
    # The commits of a comparison are not needed; its files are all on the first page.
    url = "/repos/{+repo}/compare/{basehead}?per_page=1"
    answer = await github.getitem(url, url_vars={"repo": repository, "basehead": f"{parent}...{sha}"})
    files = list(Payload(answer, "comparison").items("files"))
    # Exactly 300 may be all of them or the first ones; GitHub does not say which.
    if len(files) >= MOST_COMPARED:
        return UnknownChanges(texts.TOO_MANY_IN_COMMIT.format(most=MOST_COMPARED))
    return ChangedFiles(tuple(name for file in files for name in changed_names(file)), len(files))


def no_base(sha: str, parent: str, pushes: Sequence[BranchPush]) -> UnknownChanges | None:
    """Say why a commit cannot be compared with its parent; None if it can.

    After a forced push, or a push of several commits, the parent is not the earlier tip of the branch, so a comparison
    with the parent would miss the other changes of the push.
    """
    if not parent:
        return UnknownChanges(texts.NO_PARENT.format(sha=_short_sha(sha)))
    # TVM's scripts had to guess what a branch is compared with, and guessed wrong (TVM #12097, #12210).
    for push in pushes:
        if push.new_sha == sha and push.old_sha not in (parent, NO_COMMIT):
            reason = texts.OTHER_BASE.format(
                before=_short_sha(push.old_sha), sha=_short_sha(sha), parent=_short_sha(parent)
            )
            return UnknownChanges(reason)
    return None


def _short_sha(sha: str) -> str:
    return sha[:SHOWN_OF_SHA]
