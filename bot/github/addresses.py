"""Paths of a repository's pages on GitHub, built from numbers, SHAs and quoted names. No I/O."""

from __future__ import annotations

from typing import NewType
from urllib.parse import quote

from bot.core.events import ISSUE_COMMENT, REVIEW, REVIEW_COMMENT
from bot.core.patterns import Pattern

GitHubPage = NewType("GitHubPage", str)
"""The path of a page below its repository's, such as `pull/42#issuecomment-7`; only this module makes one."""
NO_PAGE = GitHubPage("")
_FRAGMENTS = {ISSUE_COMMENT: "issuecomment-", REVIEW: "pullrequestreview-", REVIEW_COMMENT: "discussion_r"}
_KNOWN = Pattern(
    r"(?:pull|issues)/[0-9]+(?:#(?:issuecomment-|pullrequestreview-|discussion_r)[0-9]+)?"
    r"|runs/[0-9]+"
    r"|actions/runs/[0-9]+(?:/job/[0-9]+)?"
    r"|commit/[0-9a-f]{40}(?:[0-9a-f]{24})?(?:/checks)?"
    r"|tree(?:/[A-Za-z0-9_~%-][A-Za-z0-9_~%.-]*)+"
)


def stored_page(text: object) -> GitHubPage:
    """Return a page from stored text; `NO_PAGE` if the text has none of the forms that this module makes."""
    return GitHubPage(text) if isinstance(text, str) and _KNOWN.fullmatch(text) else NO_PAGE


def pull_on_github(number: int) -> GitHubPage:
    """Return the page of a pull request; GitHub redirects if the number is an issue's."""
    return GitHubPage(f"pull/{number}")


def issue_on_github(number: int) -> GitHubPage:
    """Return the page of an issue."""
    return GitHubPage(f"issues/{number}")


def comment_on_github(number: int, comment: int, kind: str = ISSUE_COMMENT) -> GitHubPage:
    """Return the page of a pull request or issue at a comment or review; for any other kind, the page itself."""
    fragment = _FRAGMENTS.get(kind)
    return GitHubPage(f"pull/{number}#{fragment}{comment}") if fragment else pull_on_github(number)


def check_run_on_github(number: int) -> GitHubPage:
    """Return the page of a check run, by its ID; `NO_PAGE` for 0."""
    return GitHubPage(f"runs/{number}") if number else NO_PAGE


def workflow_run_on_github(run: int, job: int | None = None) -> GitHubPage:
    """Return the page of a run of GitHub Actions, or of one of its jobs, by their IDs."""
    return GitHubPage(f"actions/runs/{run}" + (f"/job/{job}" if job else ""))


def commit_on_github(sha: str, *, checks: bool = False) -> GitHubPage:
    """Return the page of a commit, or of its checks; `NO_PAGE` for anything but a SHA."""
    return stored_page(f"commit/{sha}/checks" if checks else f"commit/{sha}")


def branch_on_github(branch: str) -> GitHubPage:
    """Return the page of a branch."""
    return stored_page(f"tree/{quote(branch, errors='replace')}")
