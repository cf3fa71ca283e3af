"""Series of nightly values with known noise, for `tests.signal.measurements`. The noise of each kind is about 2 %."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import islice
from random import Random
from statistics import median

DEVIATION = 0.02
SAMPLES = 5
MONTH = 30


def normal(rng: Random) -> Iterator[float]:
    """Yield normal noise."""
    while True:
        yield rng.gauss(0, DEVIATION)


def median_of_samples(rng: Random) -> Iterator[float]:
    """Yield the median of five samples a night, each with normal noise."""
    while True:
        yield median(rng.gauss(0, DEVIATION) for _ in range(SAMPLES))


def heavy_tailed(rng: Random) -> Iterator[float]:
    """Yield Student's t with 3 degrees of freedom, which has the same standard deviation."""
    while True:
        yield DEVIATION / math.sqrt(3) * rng.gauss(0, 1) / math.sqrt(rng.gammavariate(1.5, 2) / 3)


def drifting(rng: Random) -> Iterator[float]:
    """Yield normal noise around a level that drifts by 0.3 to 1 % a month, in one direction, and wanders a bit."""
    slope, level = rng.choice((-1, 1)) * rng.uniform(0.003, 0.01) / MONTH, 0.0
    while True:
        level += slope + rng.gauss(0, DEVIATION / 40)
        yield level + rng.gauss(0, DEVIATION)


def bimodal(rng: Random) -> Iterator[float]:
    """Yield two levels, 4 % from each other, of which a night has the higher with some probability."""
    share = rng.uniform(0.1, 0.5)
    while True:
        yield rng.gauss(0, DEVIATION / 2) + (2 * DEVIATION if rng.random() < share else 0)


def with_outliers(rng: Random) -> Iterator[float]:
    """Yield normal noise, and in 3 % of the nights 10 to 50 % more."""
    while True:
        yield rng.gauss(0, DEVIATION) + (math.log(rng.uniform(1.1, 1.5)) if rng.random() < 0.03 else 0)


def temperature_waves(rng: Random) -> Iterator[float]:
    """Yield waves of 2 % up and down, each 10 to 60 nights long, with half of the normal noise."""
    phase, angle = rng.uniform(0, math.tau), math.tau / rng.uniform(10, 60)
    while True:
        phase += angle
        yield DEVIATION * math.sin(phase) + rng.gauss(0, DEVIATION / 2)


def half_normal(rng: Random) -> Iterator[float]:
    """Yield half of the normal noise, for values that are then rounded."""
    while True:
        yield rng.gauss(0, DEVIATION / 2)


NOISES: dict[str, Callable[[Random], Iterator[float]]] = {
    "normal": normal,
    "median of 5 samples": median_of_samples,
    "heavy-tailed": heavy_tailed,
    "drifting": drifting,
    "bimodal": bimodal,
    "quantised": half_normal,
    "outliers": with_outliers,
    "temperature waves": temperature_waves,
}
QUANTISED = "quantised"


def series(noise: str, rng: Random, nights: int, changed: float = 1.0, since: int = 0) -> list[float]:
    """Return a series with a kind of noise; from night `since` on, its level is `changed` times as high.

    The values of the kind `quantised` are rounded to a unit between 1 and 5 % of the level.
    """
    level = 10 ** rng.uniform(0, 3)
    unit = level * rng.uniform(0.01, 0.05)
    values = [level * math.exp(offset) for offset in islice(NOISES[noise](rng), nights)]
    values[since:] = [value * changed for value in values[since:]]
    return [round(value / unit) * unit for value in values] if noise == QUANTISED else values
