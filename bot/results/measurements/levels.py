"""On which side of a change of its level a measured value is. No I/O."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from bot.results.measurements.texts import number_text


@dataclass(frozen=True, slots=True)
class MeasuredLevels:
    """The levels of a series before and after a change, in a unit."""

    before: float
    after: float
    unit: str = ""

    def is_new(self, value: float) -> bool:
        """Return whether a finite value is closer to the new level: in shares of it if all are positive."""
        before, after = self.before, self.after
        if min(before, after, value) > 0:
            before, after, value = math.log(before), math.log(after), math.log(value)
        return abs(value / 2 - after / 2) < abs(value / 2 - before / 2)  # halves: no difference is infinite

    def text(self, value: float) -> str:
        """Return a value with the unit: `467 ms`."""
        return f"{number_text(value)} {self.unit}".strip()

    def count_new(self, values: Iterable[float]) -> tuple[int, int]:
        """Return how many values are closer to the new level, and how many others there are."""
        sides = [self.is_new(value) for value in values]
        return sum(sides), len(sides) - sum(sides)
