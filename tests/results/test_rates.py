"""Failure rates from a few runs: their intervals, what a repetition shows, and how often both are right."""

from __future__ import annotations

from math import comb

import pytest

from bot.results.rates import (
    CONFIDENCE,
    FailureRate,
    RepeatVerdict,
    chance_of_more,
    chance_of_no_failure,
    repeat_verdict,
    runs_to_tell,
)
from tests.signal.reproduce import covered


def test_over_all_rates_exactly_95_percent_of_the_intervals_contain_the_true_one() -> None:
    points = 1_000
    for runs in (1, 5, 10, 20):
        intervals = [FailureRate(failed, runs).interval for failed in range(runs + 1)]
        share = sum(
            comb(runs, failed) * rate**failed * (1 - rate) ** (runs - failed)
            for rate in ((point + 0.5) / points for point in range(points))
            for failed, (low, high) in enumerate(intervals)
            if low <= rate <= high
        )
        assert share / points == pytest.approx(CONFIDENCE, abs=0.002), runs
        mirrored = [(1 - high, 1 - low) for low, high in reversed(intervals)]
        assert [bound for pair in mirrored for bound in pair] == pytest.approx(
            [bound for pair in intervals for bound in pair], abs=1e-9
        ), "passing and failing are symmetric"
    assert (FailureRate(0, 10).interval[0], FailureRate(10, 10).interval[1]) == (0.0, 1.0)
    assert FailureRate(0, 0).interval == (0.0, 1.0)
    low, high = FailureRate(1000, 2000).interval
    assert (low, high) == pytest.approx((0.5 - 0.0219, 0.5 + 0.0219), abs=0.0001), "almost a normal distribution"


def test_simulated_requests_are_covered_in_93_to_97_percent_and_seldom_called_fixed() -> None:
    coverage = covered(7, None, 10, 1_000)
    assert 0.93 <= coverage.share <= 0.97
    assert coverage.fixed <= 0.05 * coverage.same, "a test whose rate has not changed"


def test_chances_agree_with_their_definitions() -> None:
    assert chance_of_no_failure(FailureRate(0, 0), 1) == pytest.approx(0.5), "every rate is equally likely"
    assert chance_of_no_failure(FailureRate(4, 6), 0) == pytest.approx(1.0)
    assert chance_of_more(FailureRate(3, 10), FailureRate(3, 10)) == pytest.approx(0.5)
    assert chance_of_more(FailureRate(1, 1), FailureRate(0, 0)) == pytest.approx(2 / 3)
    both = chance_of_more(FailureRate(6, 10), FailureRate(1, 9)) + chance_of_more(FailureRate(1, 9), FailureRate(6, 10))
    assert both == pytest.approx(1.0)


def test_a_repetition_is_called_fixed_only_after_enough_runs() -> None:
    before = FailureRate(4, 6)
    needed = runs_to_tell(before, 50)
    assert needed == 4
    assert [runs_to_tell(before, most) for most in (needed - 1, needed)] == [None, needed], "of as many as are possible"
    verdicts = [repeat_verdict(before, FailureRate(0, runs)) for runs in (needed - 1, needed)]
    assert verdicts == [RepeatVerdict.UNKNOWN, RepeatVerdict.FIXED]
    assert repeat_verdict(before, FailureRate(1, 50)) is RepeatVerdict.STILL_FAILS
    assert repeat_verdict(FailureRate(0, 10), FailureRate(0, 50)) is RepeatVerdict.UNKNOWN, "it never failed"
    assert runs_to_tell(FailureRate(1, 50), 50) is None
