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

LARGE = 1.7976931348623157e308
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
    places = "".join(f"M{dot.get('cx')} {dot.get('cy')}h0" for dot in root.findall("circle"))
    assert places == dots, "a phone shows the same, in one element"
    assert root.get("aria-label") == text
    assert len(root.findall("circle")) == len(values)
    for element in root.iter():
        for name in NUMBERS:
            if (written := element.get(name)) is not None:
                assert -1 <= float(written) <= max(chart.width, chart.height), (element.tag, name)
