"""A cost at several sizes: how it is measured, which law it keeps, and whether it meets its goal."""

from __future__ import annotations

import math
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.engine.service import Engine

REPETITIONS = 9
"""How often a figure is measured; the lowest counts, because everything else on the machine only adds to it."""
TOLERANCE = 0.3
"""How much the exponent may exceed that of the row's law: figures of microseconds vary."""
CONSTANT, LINEAR = "constant", "linear"
EXPONENTS = {CONSTANT: 0.0, LINEAR: 1.0}
WORDS = ((0.3, CONSTANT), (0.75, "below linear"), (1.3, LINEAR), (math.inf, "above linear"))
"""The name of a law, by the highest exponent that has it."""


@dataclass(frozen=True, slots=True)
class ScalePlace:
    """Where a row is measured: an empty folder, and the URL of a new database with all tables."""

    folder: Path
    url: str

    def engine(self) -> Engine:
        """Return an engine on the database, which the caller opens."""
        return Engine(self.url)


@dataclass(frozen=True, slots=True)
class ScaleRow:
    """One cost. `measure` returns the figure of one size in `unit`, or its coroutine does; `law` is how it may grow.

    The figure of the largest size, 1,000 times `base`, must not exceed `goal`. A row without a database, or of one
    `database` alone, names it.
    """

    what: str
    counted: str
    unit: str
    base: int
    law: str
    goal: float
    measure: Callable[[ScalePlace, int], Coroutine[Any, Any, float] | float]
    database: str = ""


@dataclass(frozen=True, slots=True)
class Scaling:
    """The figures of a row by size, the exponent that fits them, and whether law and goal hold."""

    name: str
    what: str
    counted: str
    unit: str
    law: str
    goal: float
    sizes: tuple[int, ...]
    figures: tuple[float, ...]
    exponent: float
    grows: str
    met: str


def exponent_of(sizes: Sequence[int], figures: Sequence[float]) -> float:
    """Return the exponent of the power of the size that fits the last ten-fold step.

    At small sizes, what every call costs hides how the rest grows.
    """
    (smaller, larger), (lower, higher) = sizes[-2:], figures[-2:]
    # A figure of zero, such as a count of statements, grows like its successor.
    return math.log(max(higher, 1e-9) / max(lower, 1e-9)) / math.log(larger / smaller)


def scaling(name: str, row: ScaleRow, figures: Mapping[int, float]) -> Scaling:
    """Compare the figures of a row with its law and its goal."""
    sizes = tuple(sorted(figures))
    ordered = tuple(figures[size] for size in sizes)
    exponent = exponent_of(sizes, ordered)
    grows = next(words for highest, words in WORDS if exponent <= highest)
    # A constant that is far below its goal may well vary by more than the tolerance.
    keeps_law = exponent <= EXPONENTS[row.law] + TOLERANCE or ordered[-1] <= row.goal / 10
    is_met = keeps_law and ordered[-1] <= row.goal
    rounded = tuple(float(f"{figure:.3g}") for figure in ordered)
    return Scaling(
        name=name,
        what=row.what,
        counted=row.counted,
        unit=row.unit,
        law=row.law,
        goal=row.goal,
        sizes=sizes,
        figures=rounded,
        exponent=round(exponent, 2),
        grows=grows,
        met="met" if is_met else "**missed**",
    )


async def cpu_milliseconds(work: Callable[[], Awaitable[object]], repetitions: int = REPETITIONS) -> float:
    """Return the processor time of this process for one call, its threads included: the lowest of some."""
    await work()  # the first call fills caches
    taken = []
    for _ in range(repetitions):
        began = time.process_time()
        await work()
        taken.append(1000 * (time.process_time() - began))
    return min(taken)
