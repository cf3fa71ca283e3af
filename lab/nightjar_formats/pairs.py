"""Compare two sides that ran in turn on one device: A B B A, A B B A, and so on. No I/O.

In each block of four, a drift that is linear in time cancels out, such as that of a device that warms up. So the blocks
have little in common, and the logarithm of their ratio is read as a normal variable with unknown variance.

The interval may be computed after every block, to stop when it is short enough, or for any other reason: with 95 %
probability, *all* of the intervals have the true ratio. Student's interval has this probability only for a number of
blocks that was fixed before, and misses it too often otherwise (`python -m tests.signal.pairs`, docs/signal.md).

This is the confidence sequence of the t-test with a normal mixture over the effect size, the test martingale in the
reduced filtration of Wang and Ramdas, "Anytime-valid t-tests and confidence sequences for Gaussian means with unknown
variance" (https://arxiv.org/abs/2310.03722). A mean is outside of the interval once the Bayes factor against it has
reached 20. For the true mean, that ever happens with a probability of 5 % at most (Ville's inequality). The price is an
interval about 1.5 times as long as Student's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

WRONG = 0.05
"""The share of comparisons whose intervals may ever leave out the true ratio."""
_MIXTURE = 2.0
"""The variance of the mixture over the effect size. With this one, intervals are short after 5 to 20 blocks."""
LEAST_BLOCKS = 4
"""With fewer blocks, no mean can be ruled out."""
MOST_RATIO = 1e9
"""The largest ratio and the largest bound, and their inverse the smallest: nobody needs to know more exactly."""

# The values of A, B, B and A, in the order in which they were measured; all are above 0.
Block = tuple[float, float, float, float]


@dataclass(frozen=True)
class Ratio:
    """B divided by A, and between which bounds it is with 95 % confidence."""

    value: float
    low: float
    high: float

    @property
    def width(self) -> float:
        """Return half the width of the interval, as a share of the ratio."""
        return (self.high - self.low) / 2 / self.value

    @property
    def excludes_one(self) -> bool:
        """Whether both sides differ."""
        return not self.low <= 1 <= self.high

    @property
    def largest(self) -> float:
        """Return the largest difference from equal sides that the interval has, as a share."""
        return max(self.high - 1, 1 - self.low)


def ratio_of(blocks: Sequence[Block]) -> Ratio | None:
    """Return the ratio of B to A, or None if there are fewer than LEAST_BLOCKS blocks."""
    count = len(blocks)
    if count < LEAST_BLOCKS:
        return None
    logs = [[math.log(value) for value in block] for block in blocks]
    shares = [(first_b + second_b - first_a - second_a) / 2 for first_a, first_b, second_b, second_a in logs]
    middle = fmean(shares)
    margin = _most_t(count) * math.sqrt(variance(shares) / count)
    # From 710 on, `math.exp` raises OverflowError.
    value, low, high = (
        within_bounds(math.exp(min(700.0, logarithm))) for logarithm in (middle, middle - margin, middle + margin)
    )
    return Ratio(value, low, high)


def within_bounds(ratio: float) -> float:
    """Return a ratio, but at most MOST_RATIO and at least its inverse."""
    return min(MOST_RATIO, max(1 / MOST_RATIO, ratio))


def _most_t(count: int) -> float:
    """Return the largest t of so many values for which the Bayes factor is below 1 / WRONG.

    With n values and k = 1 + n * _MIXTURE, it is (((1 + t²/(n-1)) / (1 + t²/(n-1)/k)) ** n / k) ** 0.5.
    """
    spread = 1 + count * _MIXTURE
    growth = (spread / WRONG**2) ** (1 / count)
    return math.sqrt((count - 1) * (growth - 1) / (1 - growth / spread))
