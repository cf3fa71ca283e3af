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
    outcomes_outside,
    without_requests,
)
from handlers.device_tests.paused.rule import TargetPause

DAY = 86_400.0
NOW = 100 * DAY
GOOD, INFRA, MISSING = True, False, None


def runs_of(*usable: bool | None, last: float = NOW - DAY) -> list[NightlyOutcome]:
    """Return nightly runs, one a day, the last one at a given time."""
    first = last - (len(usable) - 1) * DAY
    return [
        NightlyOutcome(f"{n:040x}", first + n * DAY, first + n * DAY, is_usable) for n, is_usable in enumerate(usable)
    ]


outcomes = st.lists(
    st.builds(
        NightlyOutcome,
        st.integers(0, 10**6).map("{:040x}".format),
        st.floats(NOW - 10 * DAY, NOW),
        st.floats(NOW - 10 * DAY, NOW),
        st.sampled_from([GOOD, INFRA, MISSING]),
    ),
    max_size=12,
    unique_by=lambda run: run.committed_at,
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
    old_state: DegradedTarget | None, runs: list[NightlyOutcome], within: float
) -> None:
    new_state = judge_target(old_state, runs, within, NOW)
    assert judge_target(new_state, runs, within, NOW) == new_state


@given(states, outcomes, times, st.data())
def test_the_order_in_which_runs_are_read_does_not_matter(
    old_state: DegradedTarget | None, runs: list[NightlyOutcome], within: float, data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(runs))
    assert judge_target(old_state, shuffled, within, NOW) == judge_target(old_state, runs, within, NOW)


@given(outcomes, times)
def test_a_target_is_degraded_if_and_only_if_it_had_no_good_run_for_long_enough(
    runs: list[NightlyOutcome], within: float
) -> None:
    newest_good = max((run.committed_at for run in runs if run.usable), default=0.0)
    late = [run for run in runs if run.committed_at > newest_good and run.testable_at + within <= NOW]
    state = judge_target(None, runs, within, NOW)
    assert is_degraded(state) == bool(late)
    if state is not None:
        assert state.since + within <= NOW
        assert state.infra + state.missing > 0


@given(outcomes, times)
def test_two_good_runs_always_restore_a_target(runs: list[NightlyOutcome], within: float) -> None:
    state = judge_target(None, runs, within, NOW)
    more_runs = [*runs, *runs_of(GOOD, GOOD, last=NOW + 2 * DAY)]
    later_state = judge_target(state, more_runs, within, NOW + 2 * DAY)
    assert not is_degraded(later_state)
    assert (later_state is None) == (state is None)


@given(states, outcomes, times)
def test_only_good_runs_restore_a_degraded_target(
    old_state: DegradedTarget | None, runs: list[NightlyOutcome], within: float
) -> None:
    new_state = judge_target(old_state, runs, within, NOW)
    if is_degraded(old_state) and not is_degraded(new_state):
        assert sum(bool(run.usable) for run in runs) >= 2


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
    assert judge_target(None, runs, DAY, NOW + 1) == DegradedTarget(
        runs[1].sha, runs[1].testable_at, runs[1].committed_at, 0, 1
    )


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
    degraded_state = DegradedTarget("a" * 40, NOW - 20 * DAY, NOW - 20 * DAY, 1, 0, reported=True)
    new_state = judge_target(degraded_state, runs_of(GOOD, *usable)[1:], DAY, NOW)
    assert new_state == (replace(degraded_state, restored=True, reported=False) if restored else degraded_state)


def test_a_missing_run_of_tonight_does_not_keep_a_target_degraded() -> None:
    degraded_state = DegradedTarget("a" * 40, NOW - 20 * DAY, NOW - 20 * DAY, 1, 0)
    new_state = judge_target(degraded_state, runs_of(GOOD, GOOD, MISSING, last=NOW - 60), DAY, NOW)
    assert not is_degraded(new_state)


def test_good_runs_before_the_degradation_do_not_count() -> None:
    runs = runs_of(GOOD, GOOD, INFRA)
    state = judge_target(None, runs, DAY, NOW)
    runs_with_late_pass = [*runs[:2], replace(runs[2], usable=GOOD)]
    assert is_degraded(judge_target(state, runs_with_late_pass, DAY, NOW))


@pytest.mark.parametrize(("tier", "degraded"), [(1, 2), (2, 3), (3, 3)])
def test_a_degraded_target_behaves_like_the_next_tier(tier: int, degraded: int) -> None:
    degraded_state = DegradedTarget("a" * 40, NOW, NOW, 1, 0)
    assert effective_tier(tier, degraded_state) == degraded
    assert effective_tier(tier, None) == effective_tier(tier, replace(degraded_state, restored=True)) == tier


def test_a_target_that_accepts_no_requests_is_not_degraded() -> None:
    degraded_state = DegradedTarget("a" * 40, NOW, NOW, 1, 0, reported=True)
    restored = replace(degraded_state, restored=True, reported=False)
    assert [without_requests(state) for state in (None, degraded_state, restored)] == [None, restored, restored]


@pytest.mark.parametrize(
    ("since", "until", "counts"),
    [
        (NOW - 5 * DAY, NOW - DAY, True),
        (NOW - 5 * DAY, NOW - DAY + 1, False),
        (NOW + DAY, NOW + 5 * DAY, False),
        (NOW + DAY + 1, NOW + 5 * DAY, True),
        (NOW, NOW + 1, False),
    ],
)
def test_a_run_for_whose_time_the_target_was_paused_counts_only_if_it_is_good(
    since: float, until: float, counts: bool
) -> None:
    pauses = [TargetPause(0.0, 1.0, "hubot", 2), TargetPause(since, until, "hubot", 2)]
    good, infra, missing = (NightlyOutcome("a" * 40, 0.0, NOW - DAY, usable) for usable in (GOOD, INFRA, MISSING))
    expected = [good, infra, missing] if counts else [good]
    assert outcomes_outside(pauses, [good, infra, missing], 2 * DAY) == expected
    assert outcomes_outside(pauses[:1], [infra], 2 * DAY) == [infra]
