"""Measurements have limits, and a refusal names the test, the measurement and what to do."""

from __future__ import annotations

import math

import pytest
from nightjar_formats.limits import MAX_MEASUREMENT_NAME, MAX_MEASUREMENTS, MAX_SAMPLES, MAX_UNIT
from nightjar_formats.measurements import Better, Measurement, check_measurements
from nightjar_formats.refused import Refused


def test_measurements_within_the_limits_are_accepted() -> None:
    measurements = tuple(
        Measurement(
            f"{number}".zfill(MAX_MEASUREMENT_NAME), -1e308, "u" * MAX_UNIT, Better.HIGHER, (0.0,) * MAX_SAMPLES
        )
        for number in range(MAX_MEASUREMENTS)
    )
    check_measurements("test_matmul", measurements)
    assert Measurement("delegated_nodes", 12, "nodes").is_exact
    assert not Measurement("latency", 12, "ms").is_exact


@pytest.mark.parametrize("unit", ["", "µs", "m\xa0s", "\u3000", "\ue000", "\U0010fffd", "\U000e5000"])
def test_units_of_stored_runs_are_accepted_with_characters_that_python_does_not_print(unit: str) -> None:
    check_measurements("test_matmul", (Measurement("latency", 1, unit),))


@pytest.mark.parametrize("character", ["\0", "\x7f", "\x85", "\xad", "\u200b", "\u2066", "\u2028", "\u2029", "\udc80"])
def test_units_with_control_format_and_separator_characters_are_refused(character: str) -> None:
    with pytest.raises(Refused, match="without spaces and control characters"):
        check_measurements("test_matmul", (Measurement("latency", 1, f"m{character}s"),))


@pytest.mark.parametrize(
    ("measurements", "text"),
    [
        ((Measurement("latency", math.nan),), "the measurement latency of test_matmul is NaN, which is not a number"),
        ((Measurement("latency", math.inf),), "latency of test_matmul is infinity"),
        ((Measurement("latency", -math.inf),), "latency of test_matmul is minus infinity"),
        (
            (Measurement("latency", 1, samples=(1, math.nan)),),
            "sample 2 of the measurement latency of test_matmul is NaN",
        ),
        ((Measurement("latency", 1, samples=(-math.inf,)),), "sample 1 of the measurement latency .* minus infinity"),
        ((Measurement("latency", 1, samples=(1,) * (MAX_SAMPLES + 1)),), "501 samples, and 500 are allowed"),
        ((Measurement("", 1),), "a measurement of test_matmul has no name"),
        ((Measurement("n" * 101, 1),), "a name of 101 characters, and 100 are allowed. It begins n{100}$"),
        (
            (Measurement("latency", 1, "u" * 21),),
            "the unit of the measurement latency of test_matmul has 21 characters",
        ),
        ((Measurement("latency", 1, "m s"),), 'the measurement latency of test_matmul has the unit "m s": write it'),
        ((Measurement("latency", 1, "m\u202es"),), r'the unit "m\\u202es": .*control characters, as in ms'),
        ((Measurement("latency", 1, "\x1b[31m"),), "without spaces and control characters"),
        ((Measurement("latency", 1), Measurement("latency", 2)), "two measurements with the name latency"),
        ((Measurement("latency", 1),) * 65, "test_matmul has 65 measurements, and 64 are allowed"),
    ],
)
def test_a_refusal_says_what_is_wrong(measurements: tuple[Measurement, ...], text: str) -> None:
    with pytest.raises(Refused, match=text):
        check_measurements("test_matmul", measurements)
