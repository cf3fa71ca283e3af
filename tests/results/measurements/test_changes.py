"""A change of a level is reported once, when two nights confirm it, with its size; noise is not."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from random import Random

import pytest

from bot.results.measurements.changes import LevelChange, analysis_of, exact_changes
from bot.results.measurements.texts import change_text, number_text

NIGHTS = 365


def noisy(level: float, nights: int, seed: str, deviation: float = 0.01) -> list[float]:
    rng = Random(seed)
    return [level * (1 + rng.gauss(0, deviation)) for _ in range(nights)]


def test_a_regression_is_confirmed_by_its_second_night_and_ends_with_its_fix() -> None:
    values = [*noisy(412, NIGHTS, "before"), *noisy(467, 20, "slow"), *noisy(412, 20, "fixed")]
    reported = [
        (end, change) for end in range(NIGHTS - 5, len(values)) for change in analysis_of(values[: end + 1]).changes
    ]
    first_end, first = reported[0]
    assert (first.begin, first.confirmed, first_end, first.end) == (NIGHTS, NIGHTS + 1, NIGHTS + 1, None)
    assert first.low < 467 < first.high
    assert first.before == pytest.approx(412, rel=0.01)
    assert change_text("latency", "ms", first).startswith("latency 41")
    regression, fix = analysis_of(values).changes
    assert (regression.begin, regression.end, fix.begin, fix.end) == (NIGHTS, NIGHTS + 20, NIGHTS + 20, None)
    assert {change.begin for _, change in reported} == {regression.begin, fix.begin}  # later nights move neither


def test_one_night_is_not_a_change_and_nor_is_the_second_outlier_of_a_series_that_has_some() -> None:
    values = noisy(100, NIGHTS, "quiet")
    assert not analysis_of([*values, 150.0, *noisy(100, 3, "after")]).changes
    assert analysis_of([*values, 150.0, 150.0]).changes
    for night in range(10, NIGHTS, 20):
        values[night] = 150.0
    assert not analysis_of([*values, 150.0, 150.0]).changes


def test_series_that_are_negative_zero_constant_or_short_are_analysed_as_well() -> None:
    errors = [-40.0 + value for value in noisy(1, NIGHTS, "snr")]
    (drop,) = analysis_of([*errors, *(value - 10 for value in errors[:3])]).changes
    assert not drop.is_rise
    assert drop.after == pytest.approx(-49, rel=0.01)
    assert [change.begin for change in analysis_of([0.0] * NIGHTS + [1e-3] * 5).changes] == [NIGHTS]
    assert analysis_of([5.0] * NIGHTS).changes == []
    assert analysis_of([]).changes == []
    assert analysis_of([]).level is None
    assert analysis_of([1.0, 2.0]).predicted is None
    huge = analysis_of([1e308, -1e308] * 50 + [1e308] * 20)
    assert huge.level is not None


def test_every_change_of_a_count_is_a_fact_and_has_its_end() -> None:
    changes = exact_changes([12, 12, 11, 11, 9, 12, 12])
    assert [(change.begin, change.before, change.after, change.end) for change in changes] == [
        (2, 12, 11, 5),
        (4, 11, 9, 5),
        (5, 9, 12, None),
    ]
    assert change_text("delegated_nodes", "nodes", changes[0]) == "delegated_nodes 12 -> 11 nodes"
    # Steps below the threshold add up.
    changes = exact_changes([1000, 1004, 1008, 1012, 1000], least_share=0.01)
    assert [(change.begin, change.before, change.after) for change in changes] == [(3, 1000, 1012), (4, 1012, 1000)]


def test_a_threshold_leaves_out_smaller_changes() -> None:
    values = [*noisy(100, NIGHTS, "before"), *noisy(105, 10, "after")]
    assert [change.begin for change in analysis_of(values).changes] == [NIGHTS]
    assert analysis_of(values, least=0.08).changes == []


@pytest.mark.no_cover
def test_the_prediction_interval_has_99_of_100_nights_whatever_the_noise() -> None:
    outside = nights = 0
    rng = Random("prediction")
    for _ in range(200):
        values = [100 * (1 + rng.gauss(0, 0.02) + (0.2 if rng.random() < 0.02 else 0)) for _ in range(NIGHTS)]
        predicted = analysis_of(values[:-10]).predicted
        assert predicted is not None
        outside += sum(not predicted[0] <= value <= predicted[1] for value in values[-10:])
        nights += 10
    assert outside <= 0.02 * nights


def test_numbers_near_the_limits_of_doubles_are_analysed() -> None:
    for exponents in ((290, 308), (-320, -300)):
        chance = Random("limits")
        analysis = analysis_of([10 ** chance.uniform(*exponents) for _ in range(80)])
        assert analysis.level is not None
        assert math.isfinite(analysis.level)
    assert analysis_of([1.7e308, -1.7e308] * 40).level is not None


@pytest.mark.parametrize(
    ("levels", "unit", "text"),
    [
        ((412.0, 467.2, 457.1, 477.9), "ms", "latency 412 -> 467 ms, +13 % (11 to 16)"),
        ((467.2, 412.0, 403.0, 421.1), "", "latency 467 -> 412, -12 % (-14 to -10)"),
        ((100.0, 101.25, 100.5, 102.0), "ms", "latency 100 -> 101 ms, +1.2 % (0.5 to 2.0)"),
        ((100.0, 110.0, 109.0, 111.0), "ms", "latency 100 -> 110 ms, +10 % (9 to 11)"),
        ((-4.0, 2.0, 1.5, 2.5), "dB", "latency -4 -> 2 dB (1.5 to 2.5)"),
        ((0.0, 2.0, 1.5, 2.5), "dB", "latency 0 -> 2 dB (1.5 to 2.5)"),
        ((1.0, 500.0, 400.0, 2e9), "ms", "latency 1 -> 500 ms (400 to 2,000,000,000)"),
        ((12.0, 11.0, 11.0, 11.0), "nodes", "latency 12 -> 11 nodes"),
    ],
)
def test_a_change_is_one_line(levels: tuple[float, float, float, float], unit: str, text: str) -> None:
    assert change_text("latency", unit, LevelChange(0, 1, *levels)) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.000123456, "0.000123"),
        (99.96, "100"),
        (1234567.8, "1,234,568"),
        (-123_456_789_012_345.0, "-123,456,789,012,345"),
        (1e15, "1e+15"),
        (-1.7976931348623157e308, "-1.8e+308"),
        (5e-324, "4.94e-324"),
        (-0.0, "0"),
    ],
)
def test_a_number_is_short_whatever_a_lab_sends(value: float, text: str) -> None:
    assert number_text(value) == text


LARGEST = 1.7976931348623157e308


@pytest.mark.parametrize(
    "values",
    [
        [LARGEST * (-1) ** (night * night // 3) for night in range(60)],
        [LARGEST * (1 - night % 7 / 10) for night in range(60)],
        [-LARGEST * (1 - night % 7 / 10) for night in range(60)],
        [*[0.0] * 59, LARGEST],
        [5e-324 * (night % 3) for night in range(60)],
    ],
)
def test_nothing_is_predicted_that_no_double_can_be(values: list[float]) -> None:
    analysis = analysis_of(values)
    assert all(map(math.isfinite, [analysis.level or 0.0, *(analysis.predicted or ())]))


def test_a_share_of_next_to_nothing_is_not_shown() -> None:
    values = [*noisy(1e-300, NIGHTS, "before"), *noisy(412, 5, "after")]
    (change,) = analysis_of(values).changes
    assert re.fullmatch(r"latency 1e-300 -> 41\d ms \(\d\d\d to \d\d\d\)", change_text("latency", "ms", change))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        *((412.0, 467.0), (0.0034, 0.0012), (38.217, 36.54), (-40.5, -51.2), (7, 9)),
        # A level is a multiple of the change.
        *((4096, 8192), (1.5, 3), (25, 12.5), (123.456, 246.912), (10, 15), (700, 1050), (100, 200), (-4.5, -9)),
    ],
)
@pytest.mark.parametrize(("history", "nights"), [(60, 4), (300, 3)])
def test_a_number_that_never_varied_is_reported_soon(before: float, after: float, history: int, nights: int) -> None:
    for newest in range(1, 8):
        changes = analysis_of([before] * history + [after] * newest).changes
        assert [(change.begin, change.confirmed) for change in changes] == (
            [(history, history + nights - 1)] if newest >= nights else []
        )
    ended = analysis_of([before] * history + [after] * 30 + [before] * 30).changes
    assert [(change.begin, change.end) for change in ended] == [(history, history + 30), (history + 30, None)]


@pytest.mark.parametrize("unit", [1.0, 0.25, 10.0, 1 / 32768, 0.000031, 7.3])
def test_another_rounding_of_a_number_is_not_a_change(unit: float) -> None:
    for steps in (10, 13, 27):
        values = [unit * steps] * 200 + [unit * (steps + 1)] * 10
        fall = [unit * (steps + 1)] * 200 + [unit * steps] * 10
        for series in (values, fall):
            assert analysis_of(series).changes == []
            assert analysis_of([float(f"{value:.5g}") for value in series]).changes == []


@pytest.mark.parametrize(("before", "after"), [(5, 6), (6, 5), (0.9, 0.85), (1, 2), (0.3, 0.4)])
@pytest.mark.parametrize("history", [60, 300])
def test_a_step_of_the_last_digit_may_be_another_rounding(before: float, after: float, history: int) -> None:
    assert analysis_of([before] * history + [after] * 60).changes == []


@pytest.mark.parametrize("seed", range(3))
def test_later_nights_neither_add_nor_move_changes_of_earlier_ones(seed: int) -> None:
    levels = (100, 120, 90, 100)
    values = [value for step, level in enumerate(levels) for value in noisy(level, 60, f"{seed}-{step}")]
    changes = [replace(change, end=None) for change in analysis_of(values).changes]
    assert len(changes) == len(levels) - 1
    for change in changes:
        for nights in range(change.confirmed - 1, change.confirmed + 3):
            known = [replace(earlier, end=None) for earlier in analysis_of(values[:nights]).changes]
            assert known == [later for later in changes if later.confirmed < nights]
