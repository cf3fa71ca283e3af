"""What a test measures besides its outcome: names, values and units, their limits, and the texts of refusals."""

from __future__ import annotations

import math
from typing import NamedTuple

from nightjar_formats.limits import MAX_MEASUREMENT_NAME, MAX_MEASUREMENTS, MAX_SAMPLES, MAX_UNIT
from nightjar_formats.refused import Refused, TooMuch
from nightjar_formats.text_enum import TextEnum

NOT_A_NUMBER = "the measurement {name} of {test} is NaN, which is not a number: leave it out"
INFINITE = "the measurement {name} of {test} is {value}: send a finite number, or leave it out"
BAD_SAMPLE = "sample {number:,} of the measurement {name} of {test} is {value}: send finite numbers only"
NO_NAME = "a measurement of {test} has no name"
NAME_TOO_LONG = (
    f"a measurement of {{test}} has a name of {{length:,}} characters, and {MAX_MEASUREMENT_NAME:,} are allowed. "
    "It begins {name}"
)
UNIT_TOO_LONG = (
    f"the unit of the measurement {{name}} of {{test}} has {{length:,}} characters, and {MAX_UNIT:,} are allowed"
)
TOO_MANY_SAMPLES = (
    f"the measurement {{name}} of {{test}} has {{count:,}} samples, and {MAX_SAMPLES:,} are allowed: send their median "
    "as the value, and fewer samples"
)
TOO_MANY_MEASUREMENTS = f"{{test}} has {{count:,}} measurements, and {MAX_MEASUREMENTS:,} are allowed"
TWO_WITH_NAME = "{test} has two measurements with the name {name}: give each its own, or send the values as samples"

EXACT_UNITS = frozenset({"count", "nodes", "ops", "operators", "parameters", "instructions", "B", "byte", "bytes"})
"""Units of numbers without noise, in which any change is a fact."""


class Better(TextEnum):
    """Which values of a measurement are better."""

    LOWER = "lower"
    HIGHER = "higher"
    NONE = ""


class Measurement(NamedTuple):
    """One number that a test measured, such as `latency` in `ms`; its `samples` are what the value summarizes."""

    name: str
    value: float
    unit: str = ""
    better: Better = Better.NONE
    samples: tuple[float, ...] = ()

    @property
    def is_exact(self) -> bool:
        """Whether the number has no noise: it counts something."""
        return self.unit in EXACT_UNITS


def check_measurements(test: str, measurements: tuple[Measurement, ...]) -> None:
    """Check what one test measured. Raises `Refused` with a text that names the test and the measurement."""
    if len(measurements) > MAX_MEASUREMENTS:
        raise TooMuch(TOO_MANY_MEASUREMENTS.format(test=test, count=len(measurements)))
    names = set()
    for measurement in measurements:
        _check(test, measurement)
        if measurement.name in names:
            raise Refused(TWO_WITH_NAME.format(test=test, name=measurement.name))
        names.add(measurement.name)


def _check(test: str, measurement: Measurement) -> None:
    name, samples = measurement.name, measurement.samples
    if not name:
        raise Refused(NO_NAME.format(test=test))
    if len(name) > MAX_MEASUREMENT_NAME:
        raise TooMuch(NAME_TOO_LONG.format(test=test, length=len(name), name=name[:MAX_MEASUREMENT_NAME]))
    if len(measurement.unit) > MAX_UNIT:
        raise TooMuch(UNIT_TOO_LONG.format(test=test, name=name, length=len(measurement.unit)))
    if math.isnan(measurement.value):
        raise Refused(NOT_A_NUMBER.format(test=test, name=name))
    if math.isinf(measurement.value):
        raise Refused(INFINITE.format(test=test, name=name, value=_infinity(measurement.value)))
    if len(samples) > MAX_SAMPLES:
        raise TooMuch(TOO_MANY_SAMPLES.format(test=test, name=name, count=len(samples)))
    bad = _first_bad(samples)
    if bad is not None:
        value = samples[bad]
        text = "NaN" if math.isnan(value) else _infinity(value)
        raise Refused(BAD_SAMPLE.format(test=test, name=name, number=bad + 1, value=text))


def _first_bad(samples: tuple[float, ...]) -> int | None:
    return next((number for number, sample in enumerate(samples) if not math.isfinite(sample)), None)


def _infinity(value: float) -> str:
    return "infinity" if value > 0 else "minus infinity"
