"""Stored moves of the nightly branch."""

from __future__ import annotations

from bot.core.utc import iso_utc
from bot.engine.service import Engine
from bot.github.commits.refs import Commit
from bot.github.commits.required import Signal, State
from bot.github.pull_heads import note_id
from handlers.tracking_branches.decide import ScannedCommit
from handlers.tracking_branches.records import NIGHTLY, TRACKING, TRACKING_MOVES, TrackingMove, TrackingState
from tests.handlers.dashboard.nightly_runs import NIGHTLY_RUNS, NOW, REPOSITORY, committed_at, sha
from tests.handlers.dashboard.stored_searches import fill_searches
from tests.handlers.dashboard.stored_story import fill_story

REPOSITORY_ID = 7
HOSTILE_TITLE = "Fuse <script>alert(1)</script> [softmax](javascript:alert(1)) & `matmul` \u202e"
NEWER = tuple(f"{number:x}" * 40 for number in (10, 11, 12))


def _scanned() -> list[ScannedCommit]:
    scanned_at = iso_utc(NOW - 3600)
    red, pending, missing = (
        Commit(NEWER[0], HOSTILE_TITLE, iso_utc(NOW - 2 * 3600)),
        Commit(NEWER[1], "Tile the convolution for wider registers", iso_utc(NOW - 5 * 3600)),
        Commit(NEWER[2], "Read shapes from the graph", ""),
    )
    return [
        ScannedCommit(red, (Signal("cpu/branch", State.RED), Signal("gpu/branch", State.RED)), scanned_at, 4),
        ScannedCommit(pending, (Signal("gpu/branch", State.PENDING),), scanned_at),
        ScannedCommit(missing, (Signal("lint", State.MISSING),), scanned_at),
    ]


def _move(number: int) -> TrackingMove:
    moved_at = iso_utc(committed_at(number) + 3600)
    by_us = number != 6
    return {
        "sha": sha(number),
        "previous_sha": sha(number - 1) if number else None,
        "moved_at": moved_at if by_us else None,
        "found_at": moved_at,
        "commits": 3 + number if by_us and number else None,
        "why": f"the newest good commit is {sha(number)[:7]}, {3 + number} commits on" if by_us else "",
    }


async def fill_engine(engine: Engine) -> None:
    """Store the state and the moves of the first repository's nightly branch."""
    await note_id(engine.records, REPOSITORY, REPOSITORY_ID)
    moves = [_move(number) for number in reversed(range(NIGHTLY_RUNS))]
    scanned = _scanned()
    state: TrackingState = {
        "branch": "nightly",
        "sha": moves[0]["sha"],
        "previous_sha": moves[0]["previous_sha"],
        "moved_at": moves[0]["moved_at"],
        "commits": moves[0]["commits"],
        "scanned_at": iso_utc(NOW - 3600),
        "why": f"none of the 3 newest commits of main is green: {NEWER[0][:7]}: cpu/branch is red",
        "trouble": "",
        "why_not_newer": [commit.as_json() for commit in scanned],
    }
    await engine.records.put(TRACKING.of(NIGHTLY, REPOSITORY_ID), state)
    await engine.records.put(TRACKING_MOVES.of(NIGHTLY, REPOSITORY_ID), {"branch": "nightly", "moves": moves})
    await fill_story(engine, REPOSITORY_ID)
    await fill_searches(engine.records, REPOSITORY_ID)
