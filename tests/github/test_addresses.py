"""Addresses of GitHub's pages: those that the bot creates are recognized, and no others."""

from __future__ import annotations

import pytest

from bot.core.events import ISSUE_COMMENT, PULL_REQUEST_BODY, REVIEW, REVIEW_COMMENT
from bot.github.addresses import (
    NO_PAGE,
    branch_on_github,
    check_run_on_github,
    comment_on_github,
    commit_on_github,
    issue_on_github,
    pull_on_github,
    stored_page,
    workflow_run_on_github,
)

SHA, LONG_SHA = "0a" * 20, "0b" * 32
MADE = {
    "pull/42": pull_on_github(42),
    "issues/7": issue_on_github(7),
    "pull/42#issuecomment-9": comment_on_github(42, 9),
    "pull/42#pullrequestreview-9": comment_on_github(42, 9, REVIEW),
    "pull/42#discussion_r9": comment_on_github(42, 9, REVIEW_COMMENT),
    "pull/43": comment_on_github(43, 43, PULL_REQUEST_BODY),
    "pull/44#issuecomment-1": comment_on_github(44, 1, ISSUE_COMMENT),
    "runs/5": check_run_on_github(5),
    "actions/runs/6": workflow_run_on_github(6),
    "actions/runs/6/job/8": workflow_run_on_github(6, 8),
    f"commit/{SHA}": commit_on_github(SHA),
    f"commit/{LONG_SHA}/checks": commit_on_github(LONG_SHA, checks=True),
    "tree/nightly": branch_on_github("nightly"),
    "tree/release/1.0": branch_on_github("release/1.0"),
    "tree/a%20%22b%22%3Fx%23y": branch_on_github('a "b"?x#y'),
}
HOSTILE = [
    "javascript:alert(1)",
    "//evil.example",
    "https://evil.example/pull/1",
    "pull/1/../../../evil",
    "pull/1\nx",
    'pull/1"onclick="alert(1)',
    "pull/1#issuecomment-<b>",
    "pull/x",
    "tree/../../../evil",
    "tree/a/../b",
    "tree//evil.example",
    "tree/a?x",
    "commit/main",
    "/pull/1",
    " pull/1",
    "settings",
    7,
    None,
    ["pull/1"],
]


@pytest.mark.parametrize("path", MADE)
def test_created_addresses_have_githubs_path_and_are_recognized_after_storage(path: str) -> None:
    assert MADE[path] == path
    assert stored_page(path) == path


@pytest.mark.parametrize("text", HOSTILE, ids=repr)
def test_other_addresses_are_rejected(text: object) -> None:
    assert stored_page(text) == NO_PAGE


@pytest.mark.parametrize("text", ["", "main", SHA[:39], f"{SHA}/../x", SHA.upper()])
def test_an_invalid_commit_has_no_page(text: str) -> None:
    assert commit_on_github(text) == commit_on_github(text, checks=True) == NO_PAGE


def test_an_unknown_kind_has_no_page() -> None:
    assert check_run_on_github(0) == NO_PAGE
