"""Nightly numbers as devices print them: times with noise in three to six digits, sizes, counts and errors."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from nightjar_formats.measurements import Better, Measurement

SEED = 20_261_127
NOISE = (0.005, 0.02, 0.05)
DIGITS = (3, 4, 5, 6)


class MeasuringDevice:
    """Measures the same tests each night, five numbers each."""

    def __init__(self, tests: int, seed: int = SEED) -> None:
        self._chance = random.Random(seed)
        self._tests = [self._test() for _ in range(tests)]

    def night(self) -> Iterator[tuple[Measurement, ...]]:
        """Yield what each test measures in a further night."""
        for test in self._tests:
            yield tuple(Measurement(name, number(), unit, better) for name, unit, better, number in test)

    def _test(self) -> list[tuple[str, str, Better, Callable[[], float]]]:
        chance = self._chance
        latency, noise, digits = chance.lognormvariate(3, 2), chance.choice(NOISE), chance.choice(DIGITS)
        size, nodes = chance.randrange(1_000, 5_000_000), chance.randrange(200)
        ratio, error, error_digits = chance.uniform(20, 80), chance.lognormvariate(-10, 2), chance.choice((3, 6))
        return [
            ("latency", "ms", Better.LOWER, lambda: _rounded(latency * chance.lognormvariate(0, noise), digits)),
            ("size", "bytes", Better.LOWER, lambda: float(size + self._rarely(4096))),
            ("delegated_nodes", "nodes", Better.HIGHER, lambda: float(nodes + self._rarely(3))),
            ("snr", "dB", Better.HIGHER, lambda: round(ratio * chance.gauss(1, 0.01), 2)),
            ("max_abs_error", "", Better.LOWER, lambda: _rounded(error * chance.lognormvariate(0, 0.1), error_digits)),
        ]

    def _rarely(self, most: int) -> int:
        return self._chance.randrange(most) if self._chance.random() < 0.02 else 0


def _rounded(number: float, digits: int) -> float:
    return float(f"{number:.{digits}g}")
