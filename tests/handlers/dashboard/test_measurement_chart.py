"""The chart of a series: its axes have round values, and whatever was measured is inside of it."""

from __future__ import annotations

from dataclasses import replace
from xml.etree import ElementTree

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from handlers.dashboard.measurements.chart import (
    DAY,
    ChartLevel,
    ChartMark,
    SeriesChart,
    SeriesPoint,
    days_between,
    nice_values,
)
from handlers.dashboard.shared.chart import duration_line, pass_rate_line

LARGE = 1.7976931348623157e308
SMALLEST = 2.2250738585072014e-308
"""The smallest number that has all digits."""
NUMBERS = ("x", "y", "cx", "cy", "x1", "x2", "y1", "y2", "width", "height")


@pytest.mark.parametrize(
    ("low", "high", "values"),
    [
        (403, 480, [420, 440, 460, 480]),
        (0.9, 4.2, [1, 2, 3, 4]),
        (-0.0003, 0.0003, [-0.0002, 0, 0.0002]),
        (10.9, 12.1, [11, 11.5, 12]),
        (-5e6, 4e7, [0, 2e7, 4e7]),
    ],
)
def test_the_values_beside_an_axis_are_round(low: float, high: float, values: list[float]) -> None:
    assert nice_values(low, high) == values


def test_days_are_evenly_spaced() -> None:
    assert list(days_between(0, 12 * DAY, 4)) == [0, 3 * DAY, 6 * DAY, 9 * DAY, 12 * DAY]
    assert list(days_between(0, DAY, 4)) == [0, DAY]
    assert list(days_between(DAY, DAY, 4)) == [DAY]


@settings(max_examples=50, deadline=None)
@given(
    st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=5),
    st.text(st.characters(exclude_categories=["C"]), max_size=20),
)
@example([LARGE, -LARGE], '"><script>')
@example([0.0, 0.0], "ms")
@example([5e-324, 1e-323], "ms")
@example([LARGE, LARGE], "ms")
@example([SMALLEST, SMALLEST], "ms")
@example([1.0, 1.0 + 1e-13], "ms")
@example([1e-322, 1e-322], "ms")
@example([0.3, 0.1 + 0.2], "ms")
@example([-2.329778479448814e132, -2.3297784794488124e132], "ms")
def test_every_value_is_drawn_inside_of_the_chart(values: list[float], text: str) -> None:
    points = [SeriesPoint(DAY * night, value, text) for night, value in enumerate(values)]
    chart = SeriesChart(
        text,
        text,
        points,
        [ChartLevel(0, DAY, values[0])],
        [ChartMark(DAY, "bad", text)],
        (min(values), max(values)),
    )
    phone = ElementTree.fromstring(replace(chart, kind="narrow").svg())
    (dots,) = (path.get("d", "") for path in phone.findall("path"))
    root = ElementTree.fromstring(chart.svg())
    assert not any((element.tail or "").strip() for element in root.iter())
    places = "".join(f"M{dot.get('cx')} {dot.get('cy')}h0" for dot in root.findall("circle"))
    assert places == dots, "a phone shows the same, in one element"
    assert root.get("aria-label") == text
    assert len(root.findall("circle")) == len(values)
    for element in root.iter():
        for name in NUMBERS:
            if (written := element.get(name)) is not None:
                assert -1 <= float(written) <= max(chart.width, chart.height), (element.tag, name)


def test_a_line_is_described_for_people_who_cannot_see_it() -> None:
    rates = "Pass rate of 3 nightly commits, oldest first: 50.0 % to 99.9 %, newest 75.0 %"
    assert f"<title>{rates}</title>" in pass_rate_line([0.5, None, 0.9999, 0.75])
    durations = "Run time of 3 nightly commits, oldest first: 12 ms to 2.5 s, newest 1.0 s"
    assert f"<title>{durations}</title>" in duration_line([0.012, 2.5, None, 1.0])
    assert pass_rate_line([None]) == duration_line([]) == ""
