"""The first sentence of the page of the nightly branch, as a table."""

from __future__ import annotations

import pytest

from bot.github.commits.refs import Commit
from handlers.nightly.answer import nightly_answer
from handlers.tracking_branches.decide import ScannedCommit
from handlers.tracking_branches.records import TrackingState

NOW = "2026-11-15T04:00:00+00:00"
MOVED, BEFORE = "a" * 40, "b" * 40


def state(newer: int) -> TrackingState:
    """Return the state of a branch that moved by two commits; `newer` ones are not green yet."""
    scanned = [ScannedCommit(Commit(sha, "Fold constants", NOW), (), NOW) for sha in (*map(str, range(newer)), MOVED)]
    return {
        "branch": "nightly",
        "sha": MOVED,
        "previous_sha": BEFORE,
        "moved_at": NOW,
        "commits": 2,
        "scanned_at": NOW,
        "why": "",
        "trouble": "",
        "why_not_newer": [commit.as_json() for commit in scanned],
    }


@pytest.mark.parametrize(
    ("newer", "end"),
    [
        (0, "there is no newer commit."),
        (1, "1 newer commit is not green yet."),
        (2, "2 newer commits are not green yet."),
    ],
)
def test_the_sentence_says_where_the_branch_is_and_why_it_is_not_newer(newer: int, end: str) -> None:
    parts = nightly_answer(state(newer), "octocat/compiler", {BEFORE})
    assert (
        "".join(part.text for part in parts) == f"Labs test aaaaaaa, from 2026-11-15 on, 2 commits after bbbbbbb; {end}"
    )
    assert [(part.text, part.href) for part in parts if part.href] == [
        ("bbbbbbb", f"/r/octocat/compiler/commits/{BEFORE}")
    ]
