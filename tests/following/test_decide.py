"""What is decided about a branch that follows another, as tables."""

from __future__ import annotations

import pytest

from bot.config.nightly import Nightly
from bot.following.decide import MOST_KEPT, Look, Looked, due, step_of
from bot.github.refs import Commit
from bot.required import Signal, State

AT = 1_772_859_600.0
"""21:00 on 6 March 2026 in Los Angeles, on the next day in UTC."""
EARLIER, LATER = "2026-03-06T20:00:00Z", "2026-03-06T20:15:00Z"
A, B, C = (Commit(letter * 40, letter, EARLIER) for letter in "abc")
RED = tuple(Signal(name, State.RED) for name in ("cpu", "docs", "gpu", "lint"))
GONE = Signal("cortexm/*", State.MISSING)


def looked(commit: Commit, *blockers: Signal, at: str = LATER, more: int = 0) -> Looked:
    return Looked(commit, blockers, at, more)


@pytest.mark.parametrize(
    ("look", "moved_to", "fine", "why"),
    [
        (Look(None, "ahead", (looked(A),)), A, True, "nightly is made at aaaaaaa"),
        (Look("c" * 40, "ahead", (looked(A),), 1), A, True, "nightly moves to aaaaaaa, one commit on"),
        (
            Look("c" * 40, "ahead", (looked(A, RED[0]), looked(B)), 4),
            B,
            True,
            "nightly moves to bbbbbbb, 4 commits on; what is newer is not fit: aaaaaaa: cpu is red",
        ),
        (
            Look("c" * 40, "ahead", (looked(A, *RED), looked(B, RED[0]))),
            None,
            False,
            "none of the 2 newest commits of main that were looked at is fit: "
            "aaaaaaa: cpu is red, docs is red, gpu is red, and 1 more",
        ),
        (
            Look("c" * 40, "ahead", (looked(A, RED[0], more=7), looked(B, RED[0]))),
            None,
            False,
            "none of the 2 newest commits of main that were looked at is fit: aaaaaaa: cpu is red, and 7 more",
        ),
        (Look("c" * 40, "identical", ()), None, True, "nothing new: nightly is at the head of main"),
        (Look("c" * 40, "behind", ()), None, True, "nothing new: nightly is ahead of main"),
        # Refused where it is applied, and told in the same way as a protected branch.
        (Look("c" * 40, "diverged", (looked(A),)), A, True, "nightly moves to aaaaaaa, some commits on"),
    ],
)
def test_the_newest_commit_that_is_fit_is_taken(look: Look, moved_to: Commit | None, fine: bool, why: str) -> None:
    step = step_of(look, Nightly(), AT)
    assert (step.chosen, step.fine, step.why) == (moved_to.sha if moved_to else "", fine, why)
    assert (step.at, len(step.why_not_newer)) == ("2026-03-07T05:00:00Z", len(look.looked))


@pytest.mark.parametrize(
    ("verdicts", "told"),
    [
        ([looked(A, GONE), looked(B, RED[0], GONE)], "matches cortexm/*: are the names in `require` still right?"),
        ([looked(A, GONE, Signal("m68k", State.MISSING)), looked(B, GONE)], "matches cortexm/*: are"),
        ([looked(A, GONE), looked(B, RED[0])], ""),
        ([looked(A, GONE)], ""),
        # What is not listed may be among the others.
        ([looked(A, GONE), looked(B, *RED, more=3), looked(C, GONE)], "matches cortexm/*: are"),
        ([looked(A, GONE), looked(B, *RED, more=3)], ""),
    ],
)
def test_a_name_that_exists_no_more_is_told(verdicts: list[Looked], told: str) -> None:
    why = step_of(Look("d" * 40, "ahead", tuple(verdicts)), Nightly(), AT).why
    assert told in why
    assert ("still right" in why) is bool(told)


@pytest.mark.parametrize(
    ("known", "most", "expected"),
    [
        ({}, 2, "ab"),
        ({}, 9, "abc"),
        ({"a": LATER, "b": EARLIER, "c": LATER}, 1, "b"),
        ({"a": LATER, "b": EARLIER, "c": LATER}, 2, "ab"),
        ({"b": EARLIER, "c": LATER}, 2, "ab"),
        ({"a": EARLIER, "b": EARLIER}, 1, "c"),
    ],
)
def test_the_new_commits_are_asked_about_and_then_the_oldest_verdicts(
    known: dict[str, str], most: int, expected: str
) -> None:
    commits = {commit.title: commit for commit in (A, B, C)}
    verdicts = {commits[title].sha: looked(commits[title], RED[0], at=at) for title, at in known.items()}
    assert due([A, B, C], verdicts, most) == {commits[title].sha for title in expected}


@pytest.mark.parametrize("one", [looked(A), looked(B, RED[0], GONE), looked(C, GONE, more=40)])
def test_a_verdict_is_the_same_after_it_was_kept(one: Looked) -> None:
    assert Looked.read(one.as_json()) == one


def test_of_many_blockers_the_first_are_kept_and_the_others_counted() -> None:
    kept = looked(A, *(Signal(f"job {n}", State.RED) for n in range(200))).as_json()
    assert (len(kept["blockers"]), kept["more"], kept["verdict"]) == (MOST_KEPT, 200 - MOST_KEPT, "red")
