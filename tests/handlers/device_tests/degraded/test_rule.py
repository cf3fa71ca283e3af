"""When a target is degraded and when it is restored, for any series of nightly runs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handlers.device_tests.degraded.rule import (
    DegradedTarget,
    NightlyOutcome,
    effective_tier,
    is_degraded,
    judge_target,
    without_target,
)

DAY = 86_400.0
NOW = 100 * DAY
GOOD, INFRA, MISSING = True, False, None


def runs_of(*usable: bool | None, last: float = NOW - DAY) -> list[NightlyOutcome]:
    """Return nightly runs, one a day, the last one at a given time."""
    first = last - (len(usable) - 1) * DAY
    return [NightlyOutcome(f"{n:040x}", first + n * DAY, first + n * DAY, one) for n, one in enumerate(usable)]


outcomes = st.lists(
    st.builds(
        NightlyOutcome,
        st.integers(0, 10**6).map("{:040x}".format),
        st.floats(NOW - 10 * DAY, NOW),
        st.floats(NOW - 10 * DAY, NOW),
        st.sampled_from([GOOD, INFRA, MISSING]),
    ),
    max_size=12,
    unique_by=lambda one: one.order,
)
states = st.none() | st.builds(
    DegradedTarget,
    st.just("a" * 40),
    st.floats(NOW - 10 * DAY, NOW),
    st.floats(NOW - 10 * DAY, NOW),
    st.integers(0, 9),
    st.integers(0, 9),
    st.booleans(),
    st.booleans(),
)
times = st.floats(3600, 5 * DAY)


@given(states, outcomes, times)
def test_evaluating_again_changes_nothing(
    known: DegradedTarget | None, runs: list[NightlyOutcome], within: float
) -> None:
    judged = judge_target(known, runs, within, NOW)
    assert judge_target(judged, runs, within, NOW) == judged


@given(states, outcomes, times, st.data())
def test_the_order_in_which_runs_are_read_does_not_matter(
    known: DegradedTarget | None, runs: list[NightlyOutcome], within: float, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(runs))
    assert judge_target(known, shuffled, within, NOW) == judge_target(known, runs, within, NOW)


@given(outcomes, times)
def test_a_target_is_degraded_if_and_only_if_it_had_no_good_run_for_long_enough(
    runs: list[NightlyOutcome], within: float
) -> None:
    newest_good = max((one.order for one in runs if one.usable), default=0.0)
    late = [one for one in runs if one.order > newest_good and one.at + within <= NOW]
    judged = judge_target(None, runs, within, NOW)
    assert is_degraded(judged) == bool(late)
    if judged is not None:
        assert judged.since + within <= NOW
        assert judged.infra + judged.missing > 0


@given(outcomes, times)
def test_two_good_runs_always_restore_a_target(runs: list[NightlyOutcome], within: float) -> None:
    judged = judge_target(None, runs, within, NOW)
    after = [*runs, *runs_of(GOOD, GOOD, last=NOW + 2 * DAY)]
    later = judge_target(judged, after, within, NOW + 2 * DAY)
    assert not is_degraded(later)
    assert (later is None) == (judged is None)


@given(states, outcomes, times)
def test_only_good_runs_restore_a_degraded_target(
    known: DegradedTarget | None, runs: list[NightlyOutcome], within: float
) -> None:
    judged = judge_target(known, runs, within, NOW)
    if is_degraded(known) and not is_degraded(judged):
        assert sum(bool(one.usable) for one in runs) >= 2


@pytest.mark.parametrize(
    ("usable", "degraded"),
    [
        ((), False),
        ((GOOD,), False),
        ((GOOD, GOOD), False),
        ((GOOD, INFRA), True),
        ((GOOD, MISSING), True),
        ((GOOD, INFRA, GOOD), False),
        ((INFRA, MISSING), True),
    ],
)
def test_the_runs_after_the_last_good_one_decide(usable: tuple[bool | None, ...], degraded: bool) -> None:
    assert is_degraded(judge_target(None, runs_of(*usable), DAY, NOW)) == degraded


def test_a_run_that_may_still_arrive_is_not_missing() -> None:
    runs = runs_of(GOOD, MISSING, last=NOW - DAY + 1)
    assert judge_target(None, runs, DAY, NOW) is None
    assert judge_target(None, runs, DAY, NOW + 1) == DegradedTarget(runs[1].sha, runs[1].at, runs[1].order, 0, 1)


@pytest.mark.parametrize(
    ("usable", "restored"),
    [
        ((), False),
        ((GOOD,), False),
        ((GOOD, INFRA), False),
        ((INFRA, GOOD), False),
        ((GOOD, INFRA, GOOD), False),
        ((GOOD, MISSING, GOOD), False),
        ((GOOD, GOOD), True),
        ((INFRA, MISSING, GOOD, GOOD), True),
    ],
)
def test_two_good_runs_in_a_row_restore(usable: tuple[bool | None, ...], restored: bool) -> None:
    known = DegradedTarget("a" * 40, NOW - 20 * DAY, NOW - 20 * DAY, 1, 0, reported=True)
    judged = judge_target(known, runs_of(GOOD, *usable)[1:], DAY, NOW)
    assert judged == (replace(known, restored=True, reported=False) if restored else known)


def test_a_missing_run_of_tonight_does_not_keep_a_target_degraded() -> None:
    known = DegradedTarget("a" * 40, NOW - 20 * DAY, NOW - 20 * DAY, 1, 0)
    judged = judge_target(known, runs_of(GOOD, GOOD, MISSING, last=NOW - 60), DAY, NOW)
    assert not is_degraded(judged)


def test_good_runs_before_the_degradation_do_not_count() -> None:
    runs = runs_of(GOOD, GOOD, INFRA)
    known = judge_target(None, runs, DAY, NOW)
    late = [*runs[:2], replace(runs[2], usable=GOOD)]
    assert is_degraded(judge_target(known, late, DAY, NOW))


@pytest.mark.parametrize(("tier", "degraded"), [(1, 2), (2, 3), (3, 3)])
def test_a_degraded_target_behaves_like_the_next_tier(tier: int, degraded: int) -> None:
    known = DegradedTarget("a" * 40, NOW, NOW, 1, 0)
    assert effective_tier(tier, known) == degraded
    assert effective_tier(tier, None) == effective_tier(tier, replace(known, restored=True)) == tier


def test_a_target_that_accepts_no_requests_is_not_degraded() -> None:
    known = DegradedTarget("a" * 40, NOW, NOW, 1, 0, reported=True)
    restored = replace(known, restored=True, reported=False)
    assert [without_target(one) for one in (None, known, restored)] == [None, restored, restored]
