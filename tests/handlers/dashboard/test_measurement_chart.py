"""The chart of a series: its axes have round values, and whatever was measured is inside of it."""

from __future__ import annotations

from collections.abc import Sequence
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
from handlers.dashboard.shared.chart import (
    ChartPoint,
    DurationChart,
    duration_chart,
    duration_line,
    pass_rate_line,
    sparkline,
)

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
        (0, 4, [0, 1, 2, 3, 4]),
        (0, 8, [0, 2, 4, 6, 8]),
        (0.05, 10.05, [2.5, 5, 7.5, 10]),
        (0, 20, [0, 5, 10, 15, 20]),
        (0, 39, [0, 10, 20, 30]),
        (1, 1, [1, 1]),
    ],
)
def test_the_values_beside_an_axis_are_round(low: float, high: float, values: list[float]) -> None:
    assert nice_values(low, high) == values


def test_days_are_evenly_spaced() -> None:
    assert list(days_between(0, 12 * DAY, 4)) == [0, 3 * DAY, 6 * DAY, 9 * DAY, 12 * DAY]
    assert list(days_between(0, DAY, 4)) == [0, DAY]
    assert list(days_between(DAY, DAY, 4)) == [DAY]
    assert list(days_between(DAY, 2.4 * DAY, 4)) == [DAY, 2.4 * DAY]
    assert list(days_between(0, 0.4 * DAY, 4)) == [0, 0.4 * DAY]
    assert list(days_between(0, 1.6 * DAY, 4)) == [0, 0.8 * DAY, 1.6 * DAY]


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


SERIES = SeriesChart(
    label="a & b",
    unit="ms",
    points=[SeriesPoint(DAY * night, value, f"<{night}>") for night, value in enumerate([412.0, 416.5, 467.0, 462.0])],
    levels=[ChartLevel(0, 2 * DAY, 414.0), ChartLevel(2 * DAY, 3 * DAY, 464.0)],
    marks=[ChartMark(2 * DAY, "bad", "a rise"), ChartMark(DAY, "", "a change")],
    band=(455.0, 475.0),
    band_begin=2 * DAY,
)

WIDE = [
    '<svg class="chart wide" role="img" width="640" height="230" viewBox="0 0 640 230" aria-label="a &amp; b">',
    '<rect class="band" x="440.7" y="31.0" width="189.3" height="51.4"/>',
    '<line class="axis" x1="62" x2="630" y1="172.5" y2="172.5"/>',
    '<text x="56" y="176.5" text-anchor="end">420</text>',
    '<line class="axis" x1="62" x2="630" y1="121.0" y2="121.0"/>',
    '<text x="56" y="125.0" text-anchor="end">440</text>',
    '<line class="axis" x1="62" x2="630" y1="69.6" y2="69.6"/>',
    '<text x="56" y="73.6" text-anchor="end">460</text>',
    '<line class="axis" x1="62" x2="630" y1="18.1" y2="18.1"/>',
    '<text x="56" y="22.1" text-anchor="end">480</text>',
    '<text x="2" y="10">ms</text>',
    '<text x="66" y="224" text-anchor="middle">1970-01-01</text>',
    '<text x="251.3" y="224" text-anchor="middle">1970-01-02</text>',
    '<text x="440.7" y="224" text-anchor="middle">1970-01-03</text>',
    '<text x="602" y="224" text-anchor="middle">1970-01-04</text>',
    '<line class="level" x1="62.0" x2="440.7" y1="187.9" y2="187.9"/>',
    '<line class="level" x1="440.7" x2="630.0" y1="59.3" y2="59.3"/>',
    '<line class="mark bad" x1="440.7" x2="440.7" y1="18" y2="206">',
    "<title>a rise</title>",
    "</line>",
    '<line class="mark" x1="251.3" x2="251.3" y1="18" y2="206">',
    "<title>a change</title>",
    "</line>",
    '<circle class="dot" cx="62.0" cy="193.0" r="2.5">',
    "<title>&lt;0&gt;</title>",
    "</circle>",
    '<circle class="dot" cx="251.3" cy="181.5" r="2.5">',
    "<title>&lt;1&gt;</title>",
    "</circle>",
    '<circle class="dot" cx="440.7" cy="51.5" r="2.5">',
    "<title>&lt;2&gt;</title>",
    "</circle>",
    '<circle class="dot" cx="630.0" cy="64.4" r="2.5">',
    "<title>&lt;3&gt;</title>",
    "</circle>",
    "</svg>",
]
NARROW = [
    '<svg class="chart narrow" role="img" width="360" height="190" viewBox="0 0 360 190" aria-label="a &amp; b">',
    '<rect class="band" x="62.0" y="28.2" width="288.0" height="40.5"/>',
    '<line class="axis" x1="62" x2="350" y1="139.6" y2="139.6"/>',
    '<text x="56" y="143.6" text-anchor="end">420</text>',
    '<line class="axis" x1="62" x2="350" y1="99.1" y2="99.1"/>',
    '<text x="56" y="103.1" text-anchor="end">440</text>',
    '<line class="axis" x1="62" x2="350" y1="58.6" y2="58.6"/>',
    '<text x="56" y="62.6" text-anchor="end">460</text>',
    '<line class="axis" x1="62" x2="350" y1="18.1" y2="18.1"/>',
    '<text x="56" y="22.1" text-anchor="end">480</text>',
    '<text x="66" y="184" text-anchor="middle">1970-01-01</text>',
    '<text x="158.0" y="184" text-anchor="middle">1970-01-02</text>',
    '<text x="254.0" y="184" text-anchor="middle">1970-01-03</text>',
    '<text x="322" y="184" text-anchor="middle">1970-01-04</text>',
    '<line class="level" x1="62.0" x2="254.0" y1="151.7" y2="151.7"/>',
    '<line class="level" x1="254.0" x2="350.0" y1="50.5" y2="50.5"/>',
    '<line class="mark bad" x1="254.0" x2="254.0" y1="18" y2="166">',
    "<title>a rise</title>",
    "</line>",
    '<line class="mark" x1="158.0" x2="158.0" y1="18" y2="166">',
    "<title>a change</title>",
    "</line>",
    '<path class="dots" stroke-width="5.0" d="M62.0 155.8h0M158.0 146.7h0M254.0 44.4h0M350.0 54.5h0"/>',
    "</svg>",
]
FLAT = [
    '<svg class="chart wide" role="img" width="640" height="230" viewBox="0 0 640 230" aria-label="">',
    '<line class="axis" x1="62" x2="630" y1="187.2" y2="187.2"/>',
    '<text x="56" y="191.2" text-anchor="end">4.8</text>',
    '<line class="axis" x1="62" x2="630" y1="112.0" y2="112.0"/>',
    '<text x="56" y="116.0" text-anchor="end">5</text>',
    '<line class="axis" x1="62" x2="630" y1="36.8" y2="36.8"/>',
    '<text x="56" y="40.8" text-anchor="end">5.2</text>',
    '<text x="66" y="224" text-anchor="middle">1970-01-01</text>',
    '<circle class="dot" cx="62.0" cy="112.0" r="2.5">',
    "<title>",
    "</title>",
    "</circle>",
    '<circle class="dot" cx="62.0" cy="112.0" r="2.5">',
    "<title>",
    "</title>",
    "</circle>",
    "</svg>",
]


def elements(svg: str) -> Sequence[str]:
    return str(svg).replace("><", ">\n<").splitlines()


def test_a_chart_is_drawn_with_all_its_parts_in_their_places() -> None:
    assert elements(SERIES.svg()) == WIDE
    assert elements(replace(SERIES, kind="narrow", width=360, height=190, unit="", band_begin=-DAY).svg()) == NARROW
    flat = [SeriesPoint(0, 5.0, ""), SeriesPoint(0, 5.0, "")]
    assert elements(SeriesChart("", "", flat).svg()) == FLAT
    many = SeriesChart("", "", [SeriesPoint(DAY * night, night, "") for night in range(150)])
    assert many.svg().count('r="2.5"') == 150
    assert replace(many, points=[*many.points, SeriesPoint(DAY * 150, 0, "")]).svg().count('r="1.6"') == 151


def test_a_line_as_high_as_a_word_and_the_durations_of_a_test_are_drawn_in_their_places() -> None:
    assert elements(sparkline([0.5, None, 1.0, 0.75], "rates & more")) == [
        '<svg class="chart spark" role="img" width="56" height="14" viewBox="0 0 56 14">',
        "<title>rates &amp; more</title>",
        '<polyline class="line" points="2.0,12.0 36.7,2.0 54.0,7.0"/>',
        "</svg>",
    ]
    assert 'points="2.0,7.0 54.0,7.0"' in sparkline([3.0, 3.0], "")
    assert (sparkline([None, 1.0], ""), sparkline([], "")) == ("", "")
    chart = duration_chart(
        [("a" * 40, 1.0, False), ("b" * 40, None, False), ("c" * 40, 4.0, True), ("d" * 40, 0, False)]
    )
    assert chart == DurationChart(
        width=640,
        height=110,
        base=94,
        line="8.0,75.5 320.0,20.0 632.0,94.0",
        points=[
            ChartPoint(x=8.0, y=75.5, bad=False, sha="a" * 40, seconds=1.0),
            ChartPoint(x=320.0, y=20.0, bad=True, sha="c" * 40, seconds=4.0),
            ChartPoint(x=632.0, y=94.0, bad=False, sha="d" * 40, seconds=0.0),
        ],
        longest=4.0,
        shortest=0.0,
        median=1.0,
    )
    assert elements(chart.dots)[3:7] == [
        '<circle class="dot bad" cx="320.0" cy="20.0" r="4">',
        "<title>ccccccc: 4.0 s, failed</title>",
        "</circle>",
        '<circle class="dot" cx="632.0" cy="94.0" r="2.5">',
    ]
    assert duration_chart([("a", 1.0, False)]) is None
    assert duration_chart([("a", 0.0, False), ("b", 0.0, True)]) is None
