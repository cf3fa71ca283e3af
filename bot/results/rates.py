"""Failure rates of a test from a few runs: how far to trust them, and what a repetition shows. Pure.

Before the first run, every rate is equally likely (Bayes and Laplace). After f failures in n runs, the rate has the
distribution Beta(f + 1, n - f + 1). An interval has the most probable rates that together have 95 %: the interval of
highest density (Box and Tiao, Bayesian Inference in Statistical Analysis, 1973, section 2.8). If requests are about
tests of all rates, their intervals contain the true rate in exactly 95 % of them, however few runs there are. Intervals
for a single fixed rate cannot do that: https://doi.org/10.1214/ss/1009213286 (Brown, Cai and DasGupta, 2001). What they
reach for each rate is measured: `python -m tests.signal.reproduce`.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from math import exp, lgamma, log

CONFIDENCE = 0.95
_STEPS = 40
"""Halvings of an interval of rates: it is then shorter than a millionth of a millionth."""


@dataclass(frozen=True, slots=True)
class FailureRate:
    """How many of some runs failed. Raises ValueError for impossible numbers."""

    failed: int
    runs: int

    def __post_init__(self) -> None:
        if not 0 <= self.failed <= self.runs:
            raise ValueError(self)

    @property
    def value(self) -> float:
        """The share of runs that failed, from 0 to 1; 0.0 without runs."""
        return self.failed / self.runs if self.runs else 0.0

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of rates that contains the true one with 95 %; from 0 to 1 without runs."""
        if not self.runs:
            return 0.0, 1.0
        if self.failed == 0:
            return 0.0, _quantile(self, CONFIDENCE)
        if self.failed == self.runs:
            return _quantile(self, 1 - CONFIDENCE), 1.0
        # The lower end decides the other one, which has the same density. They move apart until they contain enough.
        least, most = 0.0, self.value
        for _ in range(_STEPS):
            low = (least + most) / 2
            high = _end_of_density(self, _log_density(self, low))
            if _probability_below(self, high) - _probability_below(self, low) < CONFIDENCE:
                most = low
            else:
                least = low
        return low, high


class RepeatVerdict(StrEnum):
    """What a repetition at another commit shows about a failure."""

    FIXED = "fixed"
    """No run failed, and by chance that would happen in at most 5 % of repetitions."""
    STILL_FAILS = "still fails"
    UNKNOWN = "not enough runs to tell"


def repeat_verdict(earlier: FailureRate, now: FailureRate) -> RepeatVerdict:
    """Say what runs show now about a test that failed in earlier runs."""
    if now.failed:
        return RepeatVerdict.STILL_FAILS
    if earlier.failed and chance_of_no_failure(earlier, now.runs) <= 1 - CONFIDENCE:
        return RepeatVerdict.FIXED
    return RepeatVerdict.UNKNOWN


def chance_of_no_failure(earlier: FailureRate, runs: int) -> float:
    """Return the probability that no further run fails if the rate has not changed (the Beta-binomial distribution)."""
    passed = earlier.runs - earlier.failed
    return exp(_log_beta(earlier.failed + 1, passed + 1 + runs) - _log_beta(earlier.failed + 1, passed + 1))


def runs_to_tell(earlier: FailureRate, most: int) -> int | None:
    """Return the least number of runs whose success would show that a failure is fixed; None if `most` are too few."""
    if not earlier.failed:
        return None
    needed = (runs for runs in range(1, most + 1) if chance_of_no_failure(earlier, runs) <= 1 - CONFIDENCE)
    return next(needed, None)


def chance_of_more(rate: FailureRate, other: FailureRate) -> float:
    """Return the probability that the true rate of the first is larger than that of the other.

    The sum is exact for whole numbers: https://www.evanmiller.org/bayesian-ab-testing.html#binary_ab.
    """
    failed, passed = other.failed + 1, other.runs - other.failed + 1
    chance = sum(
        exp(
            _log_beta(failed + number, passed + rate.runs - rate.failed + 1)
            - log(rate.runs - rate.failed + 1 + number)
            - _log_beta(1 + number, rate.runs - rate.failed + 1)
            - _log_beta(failed, passed)
        )
        for number in range(rate.failed + 1)
    )
    return min(1.0, chance)


def _quantile(rate: FailureRate, probability: float) -> float:
    """Return the rate below which the true one is with a probability."""
    low, high = 0.0, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _probability_below(rate, middle) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _probability_below(rate: FailureRate, value: float) -> float:
    """Return the probability that the true rate is below a value.

    That of Beta(f + 1, n - f + 1) is that of more than f failures in n + 1 runs of this rate:
    https://dlmf.nist.gov/8.17#E5.
    """
    count = rate.runs + 1
    # By logarithms: the binomial coefficients of some thousand runs are larger than any float.
    return sum(
        exp(
            failed * log(value)
            + (count - failed) * log(1 - value)
            - log(count + 1)
            - _log_beta(failed + 1, count - failed + 1)
        )
        for failed in range(rate.failed + 1, count + 1)
    )


def _end_of_density(rate: FailureRate, log_density: float) -> float:
    """Return the rate above the most probable one that has this density."""
    low, high = rate.value, 1.0
    for _ in range(_STEPS):
        middle = (low + high) / 2
        if _log_density(rate, middle) > log_density:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def _log_density(rate: FailureRate, value: float) -> float:
    """Return the logarithm of the density at a value, up to a constant."""
    if not 0.0 < value < 1.0:
        return float("-inf")
    return rate.failed * log(value) + (rate.runs - rate.failed) * log(1 - value)


def _log_beta(first: int, second: int) -> float:
    return lgamma(first) + lgamma(second) - lgamma(first + second)
