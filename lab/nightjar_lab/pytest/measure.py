"""The fixture `measure`: what a test measures besides its outcome, as properties of its reports.

All reports have them, also with pytest-xdist: the plugin's own, pytest-reportlog, pytest-json-report and `--junitxml`.
`nightjar_formats.measurements` describes the properties.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from statistics import median
from types import TracebackType
from typing import Any, TypeVar

import pytest

from nightjar_lab.pytest import run_texts as texts

Result = TypeVar("Result")


@pytest.fixture
def measure(request: pytest.FixtureRequest) -> MeasurementRecorder:
    """Return the recorder of the test's measurements."""
    return MeasurementRecorder(request.node.nodeid, request.node.user_properties)


class MeasurementRecorder:
    """Records measurements of one test. Of several with one name, the last counts."""

    def __init__(self, test: str, properties: list[tuple[str, Any]]) -> None:
        self._test, self._properties = test, properties

    def __call__(
        self, name: str, value: float, *, unit: str = "", better: str = "", samples: Sequence[float] = ()
    ) -> None:
        """Record a number, as in `measure("latency", 1.23, unit="ms", better="lower")`.

        `better` is "lower", "higher", or empty. `value` summarizes the `samples`, of which up to 500 are stored. Raises
        ValueError for NaN, infinities, and what else a report must not have.
        """
        # Only here: a project that measures nothing must not load it.
        from nightjar_formats.measurements import (
            PROPERTY,
            Better,
            Measurement,
            check_measurements,
            measurement_text,
            of_properties,
            thinned,
        )
        from nightjar_formats.refused import Refused

        if better not in (*Better, "none"):
            raise ValueError(texts.MEASURE_BETTER.format(better=better))
        direction = Better("" if better == "none" else better)
        numbers = tuple(map(float, samples))
        measurement = Measurement(name, float(value), unit, direction, thinned(numbers))
        key = PROPERTY + name
        others = [item for item in self._properties if item[0] != key]
        try:
            check_measurements(self._test, (*of_properties(self._test, others), measurement))
        except Refused as refused:
            raise ValueError(str(refused)) from None
        self._properties[:] = [*others, (key, measurement_text(measurement))]

    def timer(self, name: str = "latency", *, warmup: int = 0, repeats: int = 10) -> Timer:
        """Return a timer that records the median of its seconds, with each repetition as a sample.

        `warmup`: how many first repetitions do not count.
        """
        return Timer(self, name, warmup=warmup, repeats=repeats)


class Timer:
    """Measures the time of a block or of a function.

    with measure.timer("latency"):  # a block; enter the same timer again for more samples
        run()

    output = measure.timer("latency", warmup=3, repeats=20)(run, inputs)  # 23 calls
    """

    def __init__(self, measure: MeasurementRecorder, name: str, *, warmup: int, repeats: int) -> None:
        if warmup < 0 or repeats < 1:
            raise ValueError(texts.MEASURE_REPEATS.format(warmup=warmup, repeats=repeats))
        self._measure, self._name, self._repeats = measure, name, repeats
        self._left, self._begin = warmup, 0.0
        self.samples: list[float] = []
        """The seconds of each repetition after the warm-up."""

    def __enter__(self) -> Timer:
        self._begin = time.perf_counter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._add(time.perf_counter() - self._begin, is_good=kind is None):
            self._record()

    def __call__(self, function: Callable[..., Result], *arguments: Any, **named: Any) -> Result:
        """Call a function for the warm-up and each repetition, and return its last result."""
        for _ in range(self._left + self._repeats):
            begin = time.perf_counter()
            result = function(*arguments, **named)
            self._add(time.perf_counter() - begin)
        self._record()
        return result

    def _add(self, seconds: float, *, is_good: bool = True) -> bool:
        """Add a repetition, and return whether it counts."""
        if is_good and not self._left:
            self.samples.append(seconds)
            return True
        self._left = max(0, self._left - 1)
        return False

    def _record(self) -> None:
        samples = self.samples if len(self.samples) > 1 else ()
        self._measure(self._name, median(self.samples), unit="s", better="lower", samples=samples)
