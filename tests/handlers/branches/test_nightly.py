"""What is planned for a night; which commit is taken is decided in `handlers/branches`."""

from bot.config.nightly import Nightly
from bot.effects.refs import MoveBranch
from bot.github.refs import Commit
from bot.github.required import Signal, State
from handlers.branches.decide import Looked, TrackingScan
from handlers.branches.nightly import decide
from handlers.branches.nightly_effects import ConcludeNightly

AT = 1_772_859_600.0
"""21:00 on 6 March 2026 in Los Angeles, on the next day in UTC."""
COMMIT = Commit("a" * 40, "a", "2026-03-06T20:00:00Z")


def test_a_night_is_named_after_the_day_where_it_begins() -> None:
    plan = decide(TrackingScan(None, "ahead", (Looked(COMMIT, (), ""),)), Nightly(), AT)
    assert plan.effects == (MoveBranch("nightly", COMMIT.sha),)
    assert isinstance(plan.closing, ConcludeNightly)
    assert (plan.closing.step.at, plan.closing.day) == ("2026-03-07T05:00:00Z", "2026-03-06")


def test_a_night_on_which_nothing_is_fit_moves_nothing_and_is_kept() -> None:
    red = Looked(COMMIT, (Signal("cpu", State.RED),), "")
    plan = decide(TrackingScan("b" * 40, "ahead", (red,)), Nightly(), AT)
    assert plan.effects == ()
    assert plan.closing is not None
