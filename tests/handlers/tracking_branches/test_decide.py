"""Decisions about a tracking branch, as tables."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from bot.github.commits.refs import Commit
from bot.github.commits.required import Signal, State
from handlers.nightly.config import Nightly
from handlers.tracking_branches.decide import (
    ALWAYS_REQUESTED,
    MOST_REQUESTED,
    MOST_STORED,
    ScannedCommit,
    TrackingScan,
    commits_to_request,
    decide_step,
)

AT = 1_772_859_600.0
"""21:00 on 6 March 2026 in Los Angeles, on the next day in UTC."""
EARLIER, LATER = "2026-03-06T20:00:00Z", "2026-03-06T20:15:00Z"
A, B, C = (Commit(letter * 40, letter, EARLIER) for letter in "abc")
RED = tuple(Signal(name, State.RED) for name in ("cpu", "docs", "gpu", "lint"))
MISSING = Signal("cortexm/*", State.MISSING)


def scanned(commit: Commit, *blockers: Signal, scanned_at: str = LATER, unlisted: int = 0) -> ScannedCommit:
    return ScannedCommit(commit, blockers, scanned_at, unlisted)


@pytest.mark.parametrize(
    ("scan_result", "moved_to", "fine", "reason"),
    [
        (TrackingScan(None, "ahead", (scanned(A),)), A, True, "nightly begins at aaaaaaa"),
        (
            TrackingScan("c" * 40, "ahead", (scanned(A),), 1),
            A,
            True,
            "the newest good commit is aaaaaaa, 1 commit after ccccccc",
        ),
        (
            TrackingScan("c" * 40, "ahead", (scanned(A, RED[0]), scanned(B)), 4),
            B,
            True,
            "the newest good commit is bbbbbbb, 4 commits after ccccccc. Skipped newer commits: aaaaaaa: cpu is red",
        ),
        (
            TrackingScan("c" * 40, "ahead", (scanned(A, *RED), scanned(B, RED[0]))),
            None,
            False,
            "none of the 2 newest commits of main is green: aaaaaaa: cpu is red, docs is red, gpu is red and 1 more",
        ),
        (
            TrackingScan("c" * 40, "ahead", (scanned(A, RED[0], unlisted=7), scanned(B, RED[0]))),
            None,
            False,
            "none of the 2 newest commits of main is green: aaaaaaa: cpu is red and 7 more",
        ),
        (TrackingScan("c" * 40, "identical", ()), None, True, "nothing new: nightly is at the head of main"),
        (TrackingScan("c" * 40, "behind", ()), None, True, "nothing new: nightly is ahead of main"),
        # Refused by the effect, and reported in the same way as a protected branch.
        (
            TrackingScan("c" * 40, "diverged", (scanned(A),)),
            A,
            True,
            "the newest good commit is aaaaaaa",
        ),
    ],
)
def test_the_newest_good_commit_is_chosen(
    scan_result: TrackingScan, moved_to: Commit | None, fine: bool, reason: str
) -> None:
    step = decide_step(scan_result, Nightly(), AT)
    assert (step.chosen, step.fine, step.why) == (moved_to.sha if moved_to else "", fine, reason)
    assert (step.at, len(step.why_not_newer)) == ("2026-03-07T05:00:00Z", len(scan_result.scanned))


@pytest.mark.parametrize(
    ("verdicts", "message"),
    [
        (
            [scanned(A, MISSING), scanned(B, RED[0], MISSING)],
            "matches cortexm/*: check the names in `require`",
        ),
        (
            [scanned(A, MISSING, Signal("m68k", State.MISSING)), scanned(B, MISSING)],
            "matches cortexm/*: check",
        ),
        ([scanned(A, MISSING), scanned(B, RED[0])], ""),
        ([scanned(A, MISSING)], ""),
        # A name that is not listed may be among the others.
        ([scanned(A, MISSING), scanned(B, *RED, unlisted=3), scanned(C, MISSING)], "matches cortexm/*: check"),
        ([scanned(A, MISSING), scanned(B, *RED, unlisted=3)], ""),
    ],
)
def test_a_required_name_that_no_longer_exists_is_reported(verdicts: list[ScannedCommit], message: str) -> None:
    reason = decide_step(TrackingScan("d" * 40, "ahead", tuple(verdicts)), Nightly(), AT).why
    assert message in reason
    assert ("check the names" in reason) is bool(message)


def asked(scan_times: dict[int, str], count: int = 100) -> list[int]:
    """Return which of `count` commits, where 0 is the newest, are scanned, given verdicts with these times."""
    commits = [Commit(f"{n:040}", "", EARLIER) for n in range(count)]
    verdicts = {
        commits[n].sha: scanned(commits[n], RED[0], scanned_at=scanned_at) for n, scanned_at in scan_times.items()
    }
    requested = commits_to_request(commits, verdicts)
    return [n for n, commit in enumerate(commits) if commit.sha in requested]


@pytest.mark.parametrize(
    ("scan_times", "count", "expected"),
    [
        ({}, 7, range(7)),
        ({}, 100, range(MOST_REQUESTED)),
        (dict.fromkeys(range(30), LATER), 30, range(30)),
        # The newest ones always, then those without a verdict.
        (dict.fromkeys(range(30), LATER), 100, [*range(ALWAYS_REQUESTED), *range(30, 50)]),
        (dict.fromkeys(range(95), LATER), 100, [*range(25), *range(95, 100)]),
        # If all have verdicts, the oldest verdicts.
        ({n: EARLIER if 50 <= n < 90 else LATER for n in range(100)}, 100, [*range(ALWAYS_REQUESTED), *range(50, 70)]),
    ],
)
def test_the_newest_commits_are_scanned_each_time_and_the_others_in_turn(
    scan_times: dict[int, str], count: int, expected: Iterable[int]
) -> None:
    assert asked(scan_times, count) == list(expected)


def test_every_commit_gets_its_turn() -> None:
    verdicts = dict.fromkeys(range(100), "")
    for scan_result in range(5):
        verdicts |= dict.fromkeys(asked(verdicts), f"2026-03-06T2{scan_result}:00:00Z")
    assert "" not in verdicts.values()


@pytest.mark.parametrize("commit", [scanned(A), scanned(B, RED[0], MISSING), scanned(C, MISSING, unlisted=40)])
def test_a_verdict_survives_storage(commit: ScannedCommit) -> None:
    assert ScannedCommit.read(commit.as_json()) == commit


def test_of_many_blockers_the_first_are_stored_and_the_others_counted() -> None:
    stored = scanned(A, *(Signal(f"job {n}", State.RED) for n in range(200))).as_json()
    assert (len(stored["blockers"]), stored["more"], stored["verdict"]) == (
        MOST_STORED,
        200 - MOST_STORED,
        "red",
    )


def test_a_step_stores_the_scan_as_plain_values() -> None:
    step = decide_step(TrackingScan("c" * 40, "ahead", (scanned(A, RED[0]), scanned(B)), 4), Nightly(), AT)
    assert (step.branch, step.source, step.before, step.commits) == ("nightly", "main", "c" * 40, 4)
    assert decide_step(TrackingScan(None, "ahead", (scanned(A),)), Nightly(), AT).before == ""


def test_for_a_single_rejected_commit_the_reasons_are_given() -> None:
    reason = decide_step(TrackingScan("c" * 40, "ahead", (scanned(A, RED[0]),)), Nightly(), AT).why
    assert "aaaaaaa: cpu is red" in reason


def test_a_commit_without_a_time_is_stored_without_one() -> None:
    commit = scanned(Commit("a" * 40, "a", ""))
    assert ScannedCommit.read(commit.as_json()) == commit
