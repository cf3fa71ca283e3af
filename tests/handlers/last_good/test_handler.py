"""What is planned for the last good branch; `handlers/tracking_branches` decides which commit is chosen."""

import pytest

from bot.effects.refs import MoveBranch
from bot.github.commits.refs import Commit
from bot.github.commits.required import Signal, State
from handlers.last_good.config import LastGood
from handlers.last_good.handler import LastGoodStep, plan_last_good
from handlers.tracking_branches.decide import UP_TO_DATE, Lag, ScannedCommit, TrackingScan

AT = 1_772_884_800.0
"""12:00 UTC on 7 March 2026."""
MORNING, NOON = "2026-03-07T10:00:00Z", "2026-03-07T12:00:00Z"
A, B = Commit("a" * 40, "a", NOON), Commit("b" * 40, "b", MORNING)
GOOD, RED = ScannedCommit(B, (), NOON), ScannedCommit(A, (Signal("cpu/branch", State.RED),), NOON)
RULES = LastGood(require=("*/branch",))


@pytest.mark.parametrize(
    ("scan_result", "moved_to", "lag", "lag_after"),
    [
        (TrackingScan(None, "ahead", (RED, GOOD), lag_after=Lag(1, NOON)), B, None, Lag(1, NOON)),
        (
            TrackingScan("c" * 40, "ahead", (RED, GOOD), 1, Lag(2, MORNING), Lag(1, NOON)),
            B,
            Lag(2, MORNING),
            Lag(1, NOON),
        ),
        (TrackingScan("c" * 40, "ahead", (RED,), lag=Lag(2, MORNING)), None, Lag(2, MORNING), None),
        (TrackingScan("c" * 40, "identical", (), lag=UP_TO_DATE), None, UP_TO_DATE, None),
    ],
)
def test_the_plan_says_how_far_behind_the_branch_is_with_or_without_a_move(
    scan_result: TrackingScan, moved_to: Commit | None, lag: Lag | None, lag_after: Lag | None
) -> None:
    plan = plan_last_good(scan_result, RULES, AT)
    assert plan.effects == ((MoveBranch("last-successful", moved_to.sha),) if moved_to else ())
    taken = plan.conclusion_basis
    assert isinstance(taken, LastGoodStep)
    assert (taken.lag, taken.lag_after, taken.require) == (lag, lag_after, ("*/branch",))
