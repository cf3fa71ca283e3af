"""Unknown failure rates of one test on one target, before and after a change: integrated out on a grid. No I/O."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise

RATES = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.97, 0.99, 0.998)
"""The failure rates that are distinguished. No test is taken to pass, or to fail, in every single run: labs err too."""
LEAST_RISE, LEAST_ODDS_RATIO = 0.045, 2.1
"""By how much a change must raise the rate, and its odds. Smaller changes are not looked for, so a search can end."""
_LEAST_AFTER = 0.05
_MOST_HISTORY = 100
"""Older runs count as so many at most, because a flaky test does not keep its rate for long."""
_BEFORE, _AFTER, _ANY = (0.3, 2.0), (1.0, 0.5), (0.5, 0.5)
"""The Beta distributions of rates: of a test before the change, after it, and of one about which nothing is known."""
_STEADY, _STEADY_RATE = 0.5, 0.95
"""The share of changes after which a test fails in nearly every run, at rates above this one."""
_LOGS = tuple((math.log(rate), math.log1p(-rate)) for rate in RATES)
_EDGES = (0.0, *((low + high) / 2 for low, high in pairwise(RATES)), 1.0)


@dataclass(frozen=True, slots=True)
class FailureCounts:
    """How often a test failed and passed."""

    failures: int = 0
    passes: int = 0

    def __add__(self, counts: FailureCounts) -> FailureCounts:
        return FailureCounts(self.failures + counts.failures, self.passes + counts.passes)

    def __sub__(self, counts: FailureCounts) -> FailureCounts:
        return FailureCounts(self.failures - counts.failures, self.passes - counts.passes)

    @property
    def total(self) -> int:
        """Return the number of runs."""
        return self.failures + self.passes


@dataclass(frozen=True, slots=True)
class StepFit:
    """How well a step explains runs: the logarithm of their probability, and the mean rates before and after it."""

    log_likelihood: float
    low_rate: float
    high_rate: float


def step_fit(history: FailureCounts, good_runs: FailureCounts, bad_runs: FailureCounts) -> StepFit:
    """Return how well a step from a low to a higher rate explains the runs on its good and on its bad side."""
    low_top, low = _weights(_before_prior(_limited(history)), good_runs)
    high_top, high = _weights(_AFTER_PRIOR, bad_runs)
    low_rates = [weight * rate for weight, rate in zip(low, RATES, strict=True)]
    low_sums, rate_sums = [0.0, *accumulate(low)], [0.0, *accumulate(low_rates)]
    total = before_sum = after_sum = 0.0
    for weight, rate, lower in zip(high, RATES, _LOWER, strict=True):
        total += weight * low_sums[lower]
        before_sum += weight * rate_sums[lower]
        after_sum += weight * rate * low_sums[lower]
    if total <= 0.0:
        return StepFit(-math.inf, 0.0, 1.0)
    return StepFit(low_top + high_top + math.log(total), before_sum / total, after_sum / total)


def level_fits(history: FailureCounts, counts: FailureCounts) -> tuple[tuple[float, float], tuple[float, float]]:
    """Return how well one rate explains all runs, and its mean: that of a new environment, and that of the history."""
    return _level_fit(_AFTER_PRIOR, counts), _level_fit(_before_prior(_limited(history)), counts)


def log_marginal(counts: FailureCounts, history: FailureCounts | None = None) -> float:
    """Return the logarithm of the probability of runs of one unknown rate, after a history or without one."""
    begin, end = _ANY
    if history is not None:
        limited = _limited(history)
        begin, end = _BEFORE[0] + limited.failures, _BEFORE[1] + limited.passes
    return _log_beta(begin + counts.failures, end + counts.passes) - _log_beta(begin, end)


def _level_fit(log_prior: Sequence[float], counts: FailureCounts) -> tuple[float, float]:
    top, weights = _weights(log_prior, counts)
    total = sum(weights)
    return top + math.log(total), sum(weight * rate for weight, rate in zip(weights, RATES, strict=True)) / total


@lru_cache(maxsize=20_000)
def _weights(log_prior: tuple[float, ...], counts: FailureCounts) -> tuple[float, tuple[float, ...]]:
    """Return the logarithm of the largest weight of a rate, and all weights divided by it."""
    failures, passes = counts.failures, counts.passes
    logs = [prior + failures * fail + passes * passed for prior, (fail, passed) in zip(log_prior, _LOGS, strict=True)]
    top = max(logs)
    return top, tuple(math.exp(value - top) for value in logs)


def _limited(history: FailureCounts) -> FailureCounts:
    share = min(1.0, _MOST_HISTORY / history.total) if history.total else 1.0
    return FailureCounts(round(history.failures * share), round(history.passes * share))


@lru_cache(maxsize=200)
def _before_prior(history: FailureCounts) -> tuple[float, ...]:
    begin, end = _BEFORE[0] + history.failures, _BEFORE[1] + history.passes
    return _normalized(
        [
            (begin - 1) * fail + (end - 1) * passed + math.log(high - low)
            for (fail, passed), (low, high) in zip(_LOGS, pairwise(_EDGES), strict=True)
        ]
    )


def _normalized(logs: Sequence[float]) -> tuple[float, ...]:
    top = max(logs)
    total = top + math.log(sum(math.exp(value - top) for value in logs))
    return tuple(value - total for value in logs)


def _log_beta(begin: float, end: float) -> float:
    return math.lgamma(begin) + math.lgamma(end) - math.lgamma(begin + end)


def _after_prior() -> tuple[float, ...]:
    """Return the logarithms of the chances of rates after a change: the integral of Beta(1, b) is 1 - (1 - x)^b."""
    shape, steady = _AFTER[1], sum(rate > _STEADY_RATE for rate in RATES)
    return _normalized(
        [
            math.log(
                (1 - _STEADY) * ((1 - low) ** shape - (1 - high) ** shape)
                + (_STEADY / steady if rate > _STEADY_RATE else 0.0)
            )
            if rate >= _LEAST_AFTER
            else -math.inf
            for rate, (low, high) in zip(RATES, pairwise(_EDGES), strict=True)
        ]
    )


_AFTER_PRIOR = _after_prior()
_LOWER = tuple(
    sum(low <= high - LEAST_RISE and high * (1 - low) >= LEAST_ODDS_RATIO * low * (1 - high) for low in RATES)
    for high in RATES
)
"""For each rate after a change, how many rates of the grid may be before it."""
