"""Read branches and compare commits with GitHub's API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.core.events import Payload
from bot.github.errors import is_not_found
from bot.github.transport.pages import PER_PAGE

if TYPE_CHECKING:
    from bot.github.client import GitHub

ONE_REF = "/repos/{+repo}/git/ref/heads/{branch}"
ONE_COMMIT = "/repos/{+repo}/git/commits/{sha}"
COMMITS = "/repos/{+repo}/commits{?sha,per_page}"
# From the second page on, GitHub leaves out the files, which are most of the answer.
# https://docs.github.com/en/rest/commits/commits#compare-two-commits
COMPARE = "/repos/{+repo}/compare/{base}...{head}?per_page=1&page=2"
FIRST_BETWEEN = "/repos/{+repo}/compare/{base}...{head}?per_page=1"

MOST_PAGES = 30
"""The most requests for the first parents of a branch. Each shows at least one; nearly all repeat as a 304."""
TITLE_LIMIT, AUTHOR_LIMIT = 120, 100
"""Characters of a commit's title that we store."""
AHEAD, IDENTICAL, BEHIND, DIVERGED = "ahead", "identical", "behind", "diverged"


@dataclass(frozen=True, slots=True)
class Commit:
    """A commit of a branch; `committed_at` is the committer date in ISO 8601: when GitHub merged it, or earlier.

    `author` is a login, or the name in the commit if GitHub knows no account.
    """

    sha: str
    title: str
    committed_at: str
    author: str = ""


@dataclass(frozen=True, slots=True)
class Compared:
    """The relation of one commit to another: `status` is ahead, identical, behind or diverged, `ahead_by` commits."""

    status: str
    ahead_by: int


async def branch_head(github: GitHub, repository: str, branch: str) -> str | None:
    """Return the SHA at a branch's head, None if there is no such branch."""
    try:
        ref = await github.getitem(ONE_REF, url_vars={"repo": repository, "branch": branch})
    except Exception as error:
        if is_not_found(error):
            return None
        raise
    return Payload(ref, "ref").string("object", "sha")


async def compared(github: GitHub, repository: str, base: str, head: str) -> Compared:
    """Return how `head` relates to `base`."""
    answer = await github.getitem(COMPARE, url_vars={"repo": repository, "base": base, "head": head})
    comparison = Payload(answer, "comparison")
    return Compared(comparison.string("status"), comparison.integer("ahead_by"))


async def is_update_of(github: GitHub, repository: str, sha: str, old_head: str) -> bool:
    """Return whether a commit is a merge whose first parent is `old_head`, as GitHub makes to update a branch."""
    answer = await github.getitem(ONE_COMMIT, url_vars={"repo": repository, "sha": sha})
    parents = [parent.string("sha") for parent in Payload(answer, "commit").items("parents")]
    # "Update branch" merges the base into the branch, so the branch's old head is the first parent.
    return len(parents) == 2 and parents[0] == old_head


async def message_at(github: GitHub, repository: str, sha: str) -> str:
    """Return the message of a commit."""
    answer = await github.getitem(ONE_COMMIT, url_vars={"repo": repository, "sha": sha})
    return Payload(answer, "commit").text("message")


async def merge_base(github: GitHub, repository: str, base: str, head: str) -> str | None:
    """Return the newest common ancestor of two commits, None if there is none."""
    try:
        answer = await github.getitem(COMPARE, url_vars={"repo": repository, "base": base, "head": head})
    except Exception as error:
        if is_not_found(error):
            return None
        raise
    return Payload(answer, "comparison").string("merge_base_commit", "sha")


async def first_parents(
    github: GitHub, repository: str, branch: str, *, at_least: int = PER_PAGE, until: str | None = None
) -> list[Commit]:
    """Return a branch's newest commits along first parents, newest first, at least as many or down to `until`.

    It returns fewer if the branch has fewer, or after `MOST_PAGES` requests. One request is enough unless merges
    brought in many commits: GitHub lists these as well, so the first parent of a merge may be on a later page. The
    result omits commits of merged branches: they were never the head of this branch, so no result says whether they
    are good.
    """
    commits: list[Commit] = []
    start = branch
    for _ in range(MOST_PAGES):
        page = await github.getitem(COMMITS, url_vars={"repo": repository, "sha": start, "per_page": str(PER_PAGE)})
        listed = {commit.string("sha"): commit for commit in (Payload(item, "commit") for item in page)}
        # GitHub lists the commit that the request names first.
        start = next(iter(listed), "")
        while start in listed:
            commit = listed.pop(start)
            commits.append(Commit(start, _title(commit), _committed_at(commit), _author(commit)))
            start = next((parent.string("sha") for parent in commit.items("parents")), "")
        if not start or len(commits) >= at_least or any(commit.sha == until for commit in commits):
            break
    return commits


async def first_between(github: GitHub, repository: str, base: str, head: str) -> str:
    """Return the committer date of the oldest commit in `head` that is not in `base`; empty if there is none.

    Call it rarely: GitHub's answer also lists up to 300 files.
    """
    answer = await github.getitem(FIRST_BETWEEN, url_vars={"repo": repository, "base": base, "head": head})
    return next((_committed_at(commit) for commit in Payload(answer, "comparison").items("commits")), "")


def _title(commit: Payload) -> str:
    return commit.text("commit", "message").split("\n", 1)[0][:TITLE_LIMIT]


def _author(commit: Payload) -> str:
    return (commit.text("author", "login") or commit.text("commit", "author", "name"))[:AUTHOR_LIMIT]


def _committed_at(commit: Payload) -> str:
    return commit.text("commit", "committer", "date")
