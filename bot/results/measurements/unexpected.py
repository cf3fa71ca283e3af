"""Numbers of a pull request's run that the nightly runs did not lead to expect. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nightjar_formats.measurements import Better


@dataclass(frozen=True, slots=True)
class UnexpectedNumber:
    """A number outside of the interval from `low` to `high`, in which the next night would be in 99 of 100 cases.

    `level` is that of the nightly runs. For an exact number, all three are the number of the last night.
    """

    suite: str
    test: str
    name: str
    unit: str
    better: Better
    value: float
    level: float
    low: float
    high: float

    @property
    def is_worse(self) -> bool:
        """Whether the number is worse than expected."""
        return self.better is (Better.LOWER if self.value > self.level else Better.HIGHER)

    @property
    def distance(self) -> float:
        """How far the number is from the level, as a share of it; its size if the level is 0."""
        return abs(self.value - self.level) / (abs(self.level) or 1.0)


@dataclass(frozen=True, slots=True)
class NumbersOfPull:
    """How many numbers of a run were compared, and those that are not expected: worse ones first, then by distance."""

    compared: int = 0
    unexpected: Sequence[UnexpectedNumber] = ()


NOT_COMPARED = NumbersOfPull()
