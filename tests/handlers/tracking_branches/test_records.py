"""The lag of a branch and its blockers, as tables, and what a scan reuses from the previous one."""

from __future__ import annotations

from typing import Any, cast

import pytest

from bot.github.commits.refs import Commit
from bot.github.commits.required import Signal, State
from handlers.tracking_branches.decide import ScannedCommit
from handlers.tracking_branches.records import (
    TrackingMoves,
    TrackingState,
    lag_report,
    moves_to_store,
    reusable_verdicts,
    sole_blockers,
)

RED, PENDING, MISSING = State.RED, State.PENDING, State.MISSING
NOON, HOUR = 1_772_884_800.0, 3600.0
"""12:00 UTC on 7 March 2026."""


def scanned(*blockers: tuple[str, State], sha: str = "a", unlisted: int = 0) -> ScannedCommit:
    signals = tuple(Signal(name, state) for name, state in blockers)
    return ScannedCommit(Commit(sha * 40, sha, "2026-03-07T10:00:00Z"), signals, "2026-03-07T11:45:00Z", unlisted)


@pytest.mark.parametrize(
    ("verdicts", "expected"),
    [
        ([], {}),
        ([scanned()], {}),
        ([scanned(("gpu", RED))], {"gpu": 1}),
        ([scanned(("cortexm/*", MISSING))], {"cortexm/*": 1}),
        ([scanned(("gpu", PENDING))], {}),
        ([scanned(("gpu", RED), ("cpu", RED))], {}),
        ([scanned(("gpu", RED), ("cpu", PENDING))], {}),
        ([scanned(("gpu", RED), unlisted=1)], {}),
        ([scanned(("gpu", RED)), scanned(("cpu", RED)), scanned(("cpu", RED)), scanned()], {"cpu": 2, "gpu": 1}),
        ([scanned((f"job {n:02}", RED)) for n in range(20, 0, -1)], {f"job {n:02}": 1 for n in range(1, 11)}),
    ],
)
def test_a_sole_blocker_is_red_or_missing_while_everything_else_is_green(
    verdicts: list[ScannedCommit], expected: dict[str, int]
) -> None:
    assert list(sole_blockers(verdicts).items()) == list(expected.items())


@pytest.mark.parametrize(
    ("lag", "commits", "seconds"),
    [
        ({"commits": 0, "since": ""}, 0, 0.0),
        ({"commits": 3, "since": "2026-03-07T10:00:00Z"}, 3, 2 * HOUR),
        ({"commits": 3, "since": ""}, 3, None),
        # The clock of whoever made the commit.
        ({"commits": 1, "since": "2026-03-07T12:00:05Z"}, 1, 0.0),
    ],
)
def test_a_branch_falls_behind_as_time_passes(lag: dict[str, Any], commits: int, seconds: float | None) -> None:
    record = {"lag": lag, "why_not_newer": [scanned(("gpu", RED)).as_json()]}
    behind = lag_report("octocat/compiler", record, NOON)
    assert behind is not None
    assert (behind.commits, behind.seconds, behind.blockers) == (commits, seconds, {"gpu": 1})


def test_without_a_branch_the_lag_is_unknown() -> None:
    assert lag_report("octocat/compiler", {"lag": None, "why_not_newer": []}, NOON) is None


@pytest.mark.parametrize(
    ("require", "expected"), [(["*/branch"], {"a" * 40}), (["*/branch", "lint"], set()), ([], set())]
)
def test_a_verdict_counts_only_for_its_own_requirements_and_good_commits_are_scanned_again(
    require: list[str], expected: set[str]
) -> None:
    listed = [scanned(("gpu/branch", RED)).as_json(), scanned(sha="b").as_json()]
    assert reusable_verdicts({"require": ["*/branch"], "why_not_newer": listed}, require).keys() == expected


def test_before_the_first_scan_there_are_no_verdicts() -> None:
    assert reusable_verdicts({}, ["*/branch"]) == {}


def state(
    sha: str | None, moved_at: str = "2026-11-20T05:00:00Z", *, by_bot: bool = True, **members: Any
) -> TrackingState:
    """Return the record of a branch that has been at a commit since a scan."""
    fields = {
        "previous_sha": None,
        "moved_at": moved_at if by_bot else None,
        "commits": 2 if by_bot else None,
        "why": "green",
    }
    record: Any = {
        "branch": "nightly",
        "sha": sha,
        "scanned_at": moved_at,
        "trouble": "",
        "why_not_newer": [],
        **fields,
    }
    return cast("TrackingState", {**record, **members})


def test_a_move_is_stored_once_and_the_newest_comes_first() -> None:
    first = moves_to_store({}, {}, state("a"))
    assert first is not None
    second = moves_to_store(first, state("a"), state("b", by_bot=False))
    assert second is not None
    assert [(move["sha"], move["previous_sha"], move["why"]) for move in second["moves"]] == [
        ("b", "a", ""),
        ("a", None, "green"),
    ]
    assert moves_to_store(second, state("b", by_bot=False), state("b", "2026-11-21T05:00:00Z", by_bot=False)) is None


def test_a_branch_that_existed_before_the_first_scan_has_not_moved() -> None:
    assert moves_to_store({}, {}, state("a", by_bot=False)) is None


def test_the_last_move_before_moves_were_stored_becomes_the_first_stored_one() -> None:
    stored = moves_to_store({}, state("a"), state("b"))
    assert stored is not None
    assert [move["sha"] for move in stored["moves"]] == ["b", "a"]


def test_only_thirty_moves_of_a_branch_are_stored() -> None:
    stored: TrackingMoves = {"branch": "nightly", "moves": []}
    for number in range(40):
        stored = moves_to_store(stored, state(f"{number}"), state(f"{number + 1}", why="x" * 1000)) or stored
    assert (len(stored["moves"]), stored["moves"][0]["sha"], len(stored["moves"][0]["why"])) == (30, "40", 300)
    other_branch = moves_to_store(stored, state("40"), state("a", branch="labs"))
    assert other_branch is not None
    assert [move["sha"] for move in other_branch["moves"]] == ["a"]
