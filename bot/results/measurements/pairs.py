"""Compare two sides that ran in turn on one device: A B B A, A B B A, and so on. No I/O.

In each block of four, a drift that is linear in time cancels out, such as that of a device that warms up. So the blocks
have little in common, and the interval of their mean is that of Student.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from bot.results.measurements.student import quantile

LEAST_BLOCKS = 6
"""With fewer blocks, the interval is too short too often to stop by its width."""
_OF_STOPPING = 0.965
"""The confidence of a single interval: to stop when one is short enough prefers those that are too short."""

Block = tuple[float, float, float, float]
"""The values of A, B, B and A, in the order in which they were measured; all are above 0."""


@dataclass(frozen=True, slots=True)
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


def ratio_of(blocks: Sequence[Block]) -> Ratio | None:
    """Return the ratio of B to A, or None if there are fewer than LEAST_BLOCKS blocks.

    It may be computed after every block, to stop when the interval is short enough.
    """
    if len(blocks) < LEAST_BLOCKS:
        return None
    logs = [[math.log(value) for value in block] for block in blocks]
    shares = [(first_b + second_b - first_a - second_a) / 2 for first_a, first_b, second_b, second_a in logs]
    middle, count = fmean(shares), len(shares)
    probability = (1 + _OF_STOPPING) / 2
    margin = quantile(probability, count - 1) * math.sqrt(variance(shares) / count)
    return Ratio(math.exp(middle), math.exp(middle - margin), math.exp(middle + margin))
