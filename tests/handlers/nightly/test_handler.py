"""What is planned for a nightly run; `handlers/tracking_branches` decides which commit is chosen."""

from typing import Any

from bot.effects.refs import MoveBranch
from bot.effects.remember import StoreRecord
from bot.engine.records import Record
from bot.github.commits.refs import Commit
from bot.github.commits.required import Signal, State
from bot.plan.handler import Plan
from handlers.nightly.config import Nightly
from handlers.nightly.handler import NightlyStep, decide_nightly_conclusion, plan_nightly
from handlers.tracking_branches.conclusion import BranchOutcome, StoredState
from handlers.tracking_branches.decide import ScannedCommit, TrackingScan
from handlers.tracking_branches.records import NIGHTLY, TRACKING, TRACKING_STEP

AT = 1_772_859_600.0
"""21:00 on 6 March 2026 in Los Angeles, on the next day in UTC."""
COMMIT = Commit("a" * 40, "a", "2026-03-06T20:00:00Z")


def test_a_nightly_run_is_named_after_the_local_day_on_which_it_begins() -> None:
    plan = plan_nightly(TrackingScan(None, "ahead", (ScannedCommit(COMMIT, (), ""),)), Nightly(), AT)
    assert plan.effects == (MoveBranch("nightly", COMMIT.sha),)
    assert isinstance(plan.conclusion_basis, NightlyStep)
    assert (plan.conclusion_basis.step.at, plan.conclusion_basis.day) == ("2026-03-07T05:00:00Z", "2026-03-06")


def test_a_nightly_run_without_a_good_commit_moves_nothing_and_is_stored() -> None:
    red = ScannedCommit(COMMIT, (Signal("cpu", State.RED),), "")
    plan = plan_nightly(TrackingScan("b" * 40, "ahead", (red,)), Nightly(), AT)
    assert plan.effects == ()
    assert plan.conclusion_basis is not None


def stored_in(plan: Plan, record: Record[Any]) -> dict[str, Any]:
    """Return what the plan stores in the branch's record; empty if it stores nothing."""
    key = record.of(NIGHTLY, 1).name
    records = [effect.stored for effect in plan.effects if isinstance(effect, StoreRecord) and effect.key == key]
    return dict(records[0].value) if records and records[0] else {}


def test_a_move_that_could_not_be_confirmed_at_the_time_is_later_credited_to_us() -> None:
    moved = plan_nightly(
        TrackingScan("b" * 40, "ahead", (ScannedCommit(COMMIT, (), ""),), 2), Nightly(), AT
    ).conclusion_basis
    later = plan_nightly(TrackingScan(COMMIT.sha, "identical", ()), Nightly(), AT + 3600).conclusion_basis
    assert isinstance(moved, NightlyStep)
    assert isinstance(later, NightlyStep)
    lost = decide_nightly_conclusion(StoredState({}, {}, False), moved, None, 1, page="", has_labs=True)
    assert stored_in(lost, TRACKING) == {}
    state = StoredState(stored_in(lost, TRACKING_STEP), {}, False)
    plan = decide_nightly_conclusion(state, later, BranchOutcome(COMMIT.sha, ""), 1, page="", has_labs=True)
    record = stored_in(plan, TRACKING)
    assert (record["sha"], record["previous_sha"], record["commits"]) == (COMMIT.sha, "b" * 40, 2)
    assert record["moved_at"] == "2026-03-07T05:00:00Z"
    assert [type(effect).__name__ for effect in plan.effects] == [
        "StoreRecord",
        "StoreRecord",
        "MarkNightly",
        "PublishNightly",
    ]
