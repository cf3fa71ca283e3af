"""What a test measures besides its outcome: names, values and units, their limits, and the texts of refusals.

In reports that have properties, a measurement is a property with the name `measurement.NAME` and a text: the value,
then the unit (`-` for none), which values are better (lower, higher or none), and the samples. All but the value are
optional:

    measurement.latency          1.23 ms lower 1.21,1.23,1.30
    measurement.delegated_nodes  12 nodes higher
"""

from __future__ import annotations

import math
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from nightjar_formats.limits import (
    MAX_MEASUREMENT_NAME,
    MAX_MEASUREMENTS,
    MAX_RUN_MEASUREMENTS,
    MAX_SAMPLES,
    MAX_UNIT,
)
from nightjar_formats.patterns import Pattern
from nightjar_formats.refused import Refused, TooMuch
from nightjar_formats.terminal import quoted_text
from nightjar_formats.text_enum import TextEnum

NOT_A_NUMBER = "the measurement {name} of {test} is NaN, which is not a number: leave it out"
INFINITE = "the measurement {name} of {test} is {value}: send a finite number, or leave it out"
BAD_SAMPLE = "sample {number:,} of the measurement {name} of {test} is {value}: send finite numbers only"
NO_NAME = "a measurement of {test} has no name"
BAD_NAME = (
    "a measurement of {test} has the name {name}: use letters, digits and _ . / % + -, as in latency or allocs/op"
)
BAD_UNIT = (
    "the measurement {name} of {test} has the unit {unit}: write it without spaces and control characters, as in ms or "
    "MB/s"
)
BAD_TEXT = "the measurement {name} of {test} is {text}: write VALUE UNIT lower|higher|none SAMPLES, as in 1.23 ms lower"
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
TOO_MANY_OF_RUN = (
    f"the run has more than {MAX_RUN_MEASUREMENTS:,} measurements and samples: send fewer samples, or upload it in "
    "shards"
)
TWO_WITH_NAME = "{test} has two measurements with the name {name}: give each its own, or send the values as samples"

EXACT_UNITS = frozenset({"count", "nodes", "ops", "operators", "parameters", "instructions", "B", "byte", "bytes"})
"""Units of numbers without noise, in which any change is a fact."""

PROPERTY = "measurement."
"""The beginning of the names of properties that are measurements."""
MAX_TEXT = 16_000
"""The most characters of a property that is a measurement."""
NO_UNIT = "-"
SHOWN = 80
MOST_CACHED = 1000
_NAME = Pattern(r"[A-Za-z0-9_][A-Za-z0-9_./%+-]*")
_REFUSED_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Categories of characters that no unit has: control, format (such as direction), surrogates, and line ends."""
_OTHER = Pattern(r"[^A-Za-z0-9_./%+-]")


class Better(TextEnum):
    """Which values of a measurement are better."""

    LOWER = "lower"
    HIGHER = "higher"
    NONE = ""


_BETTER = {"lower": Better.LOWER, "higher": Better.HIGHER, "none": Better.NONE}


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


def measurement_text(measurement: Measurement) -> str:
    """Return the text of a measurement's property; `read_measurement` returns the same measurement, bit by bit.

    >>> measurement_text(Measurement("latency", 1.25, "ms", Better.LOWER, (1.2, 1.25, 1.3)))
    '1.25 ms lower 1.2,1.25,1.3'
    """
    _, value, unit, better, samples = measurement
    parts = [
        repr(float(value)),
        unit or NO_UNIT,
        str(better) or "none",
        ",".join(repr(float(number)) for number in samples),
    ]
    return " ".join(parts[: 4 if samples else 3 if better else 2 if unit else 1])


def read_measurement(test: str, name: str, text: str) -> Measurement:
    """Return the measurement of a property's text. Raises `Refused`, with the names of the test and the measurement.

    NaN and infinities are returned, so that `check_measurements` can name them.
    """
    words = text.split() if len(text) <= MAX_TEXT else []
    value, unit, better, samples = _padded(words)
    if samples.count(",") >= MAX_SAMPLES:
        raise TooMuch(TOO_MANY_SAMPLES.format(test=test, name=name[:SHOWN], count=samples.count(",") + 1))
    try:
        return Measurement(
            sys.intern(name),
            float(value),
            sys.intern("" if unit == NO_UNIT else unit),
            _BETTER[better],
            tuple(float(sample) for sample in samples.split(",") if sample),
        )
    except (KeyError, ValueError):
        raise Refused(BAD_TEXT.format(test=test, name=name[:SHOWN], text=quoted_text(text[:SHOWN]))) from None


def _padded(words: Sequence[str]) -> Sequence[str]:
    """Return the four parts of a property's text; four empty ones if there are too many or none."""
    defaults = ("", NO_UNIT, "none", "")
    return [*words, *defaults[len(words) :]] if 0 < len(words) <= len(defaults) else ("",) * len(defaults)


def of_properties(test: str, properties: Iterable[tuple[object, object]]) -> tuple[Measurement, ...]:
    """Return the measurements among the properties of a test. Raises as `read_measurement` does.

    Of several properties with one name the last counts: pytest reports them with each phase of a test.
    """
    measurements: dict[str, Measurement] = {}
    for key, text in properties:
        if isinstance(key, str) and key.startswith(PROPERTY):
            name = key[len(PROPERTY) :]
            measurements[name] = read_measurement(test, name, text if isinstance(text, str) else str(text))
            if len(measurements) > MAX_MEASUREMENTS:
                raise TooMuch(TOO_MANY_MEASUREMENTS.format(test=test, count=len(measurements)))
    return tuple(measurements.values())


def named(name: str) -> str:
    """Return a name that a tool or its user chose as the name of a measurement: other characters become `_`.

    >>> named("items per second")
    'items_per_second'
    """
    return _OTHER.sub("_", name[:MAX_MEASUREMENT_NAME]).lstrip("./%+-") or "value"


def thinned(samples: Sequence[float]) -> tuple[float, ...]:
    """Return at most `MAX_SAMPLES` of the samples, evenly chosen."""
    step = -(-len(samples) // MAX_SAMPLES)
    return tuple(samples[:: step or 1])


def count_numbers(measurements: Sequence[Measurement]) -> int:
    """Return how many measurements and samples there are, for `MAX_RUN_MEASUREMENTS`."""
    return len(measurements) + sum(len(measurement.samples) for measurement in measurements)


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
    if not _is_name(name):
        raise Refused(BAD_NAME.format(test=test, name=quoted_text(name)))
    if not _is_unit(measurement.unit[: MAX_UNIT + 1]):
        raise Refused(BAD_UNIT.format(test=test, name=name, unit=quoted_text(measurement.unit[:SHOWN])))
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


# A run has hundreds of thousands of measurements with a few names and units.
@lru_cache(MOST_CACHED)
def _is_name(name: str) -> bool:
    return _NAME.fullmatch(name) is not None


@lru_cache(MOST_CACHED)
def _is_unit(unit: str) -> bool:
    # Stored runs may have characters that Python calls unprintable, such as those that its Unicode does not know yet.
    return " " not in unit and not any(unicodedata.category(character) in _REFUSED_CATEGORIES for character in unit)


def _first_bad(samples: tuple[float, ...]) -> int | None:
    return next((number for number, sample in enumerate(samples) if not math.isfinite(sample)), None)


def _infinity(value: float) -> str:
    return "infinity" if value > 0 else "minus infinity"
