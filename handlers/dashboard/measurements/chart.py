"""Draw a series of measurements as SVG: values by time, levels, changes, and where further values are expected.

No I/O. Nothing but the SVG is needed: all words on it are in its label too, which screen readers read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from markupsafe import Markup, escape

DAY = 86_400.0
TICKS = 4
PIXELS_OF_DAY = 120
"""A day below the chart takes so many pixels, at least."""
_PADDING = 0.08
"""The share of the range of values that stays free above and below them."""
_FLAT = 0.05
"""Half the height of a chart whose values are all equal, as a share of them."""
_LARGEST = 1e308
"""Values are cut off here, so that the edges of the chart are finite."""
_SMALLEST = 1e-300
"""Smaller differences between values are not drawn: doubles that are even smaller have fewer digits."""
# Not `Markup`, which would escape each number too: only the label, the unit and titles are texts.
_HEAD = (
    '<svg class="chart {kind}" role="img" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
    'aria-label="{label}">'
)
_BAND = '<rect class="band" x="{x}" y="{y}" width="{width}" height="{height}"/>'
_RULE = '<line class="axis" x1="{left}" x2="{right}" y1="{y}" y2="{y}"/>'
_VALUE = '<text x="{x}" y="{y}" text-anchor="end">{text}</text>'
_TIME = '<text x="{x}" y="{y}" text-anchor="middle">{text}</text>'
_UNIT = '<text x="2" y="10">{text}</text>'
_LEVEL = '<line class="level" x1="{x1}" x2="{x2}" y1="{y}" y2="{y}"/>'
_MARK = '<line class="mark{kind}" x1="{x}" x2="{x}" y1="{top}" y2="{bottom}"><title>{title}</title></line>'
_DOTS = '<path class="dots" stroke-width="{width}" d="{places}"/>'
_DOT = '<circle class="dot" cx="{x}" cy="{y}" r="{radius}"><title>{title}</title></circle>'


@dataclass(frozen=True, slots=True)
class SeriesPoint:
    """A value at a moment, in seconds since 1970; `title` is what a pointer on it shows."""

    moment: float
    value: float
    title: str


@dataclass(frozen=True, slots=True)
class ChartLevel:
    """The level of the values between two moments."""

    begin: float
    end: float
    value: float


@dataclass(frozen=True, slots=True)
class ChartMark:
    """A moment at which the level changed; `kind` is a class of the stylesheet, such as `bad`."""

    moment: float
    kind: str
    title: str


@dataclass(frozen=True, slots=True)
class SeriesChart:
    """What a chart shows; `points` are in the order of time, two at least. `band` has two values, or is None.

    The band begins at the moment `band_begin`. `label` says the same in words. Sizes are in pixels.
    """

    label: str
    unit: str
    points: Sequence[SeriesPoint]
    levels: Sequence[ChartLevel] = ()
    marks: Sequence[ChartMark] = ()
    band: tuple[float, float] | None = None
    band_begin: float = 0.0
    kind: str = "wide"
    """`narrow` for phones alone, on whose screens the other chart is not shown: its points have no titles."""
    width: int = 640
    height: int = 230

    def svg(self) -> Markup:
        """Return the chart."""
        head = _HEAD.format(kind=self.kind, width=self.width, height=self.height, label=escape(self.label))
        return Markup("".join([head, *self._parts()]))  # noqa: S704 (texts are escaped)

    def _parts(self) -> Iterator[str]:
        start, right, top, bottom = 62, self.width - 10, 18, self.height - 24
        low, high = self._range()
        first, last = self.points[0].moment, self.points[-1].moment

        def across(moment: float) -> float:
            return round(start + (right - start) * (moment - first) / (last - first or 1.0), 1)

        def down(value: float) -> float:
            # Halves, because the difference of two doubles may be infinite.
            share = (_cut_off(value) / 2 - low / 2) / (high / 2 - low / 2)
            return round(bottom - (bottom - top) * share, 1)

        if self.band is not None:
            x, y = across(max(first, self.band_begin)), down(self.band[1])
            yield _BAND.format(x=x, y=y, width=round(right - x, 1), height=round(down(self.band[0]) - y, 1))
        for value in nice_values(low, high):
            yield _RULE.format(left=start, right=right, y=down(value))
            yield _VALUE.format(x=start - 6, y=down(value) + 4, text=f"{value:,.10g}")
        if self.unit:
            yield _UNIT.format(text=escape(self.unit))
        for moment in days_between(first, last, self.width // PIXELS_OF_DAY):
            text = f"{datetime.fromtimestamp(moment, UTC):%Y-%m-%d}"
            yield _TIME.format(x=min(max(across(moment), start + 4), right - 28), y=self.height - 6, text=text)
        for level in self.levels:
            yield _LEVEL.format(x1=across(level.begin), x2=across(level.end), y=down(level.value))
        for mark in self.marks:
            kind = f" {mark.kind}" if mark.kind else ""
            yield _MARK.format(kind=kind, x=across(mark.moment), top=top, bottom=bottom, title=escape(mark.title))
        radius = 2.5 if len(self.points) <= 150 else 1.6
        if self.kind == "narrow":
            dots = "".join(f"M{across(point.moment)} {down(point.value)}h0" for point in self.points)
            yield _DOTS.format(places=dots, width=2 * radius)
            yield "</svg>"
            return
        for point in self.points:
            title = escape(point.title)
            yield _DOT.format(x=across(point.moment), y=down(point.value), radius=radius, title=title)
        yield "</svg>"

    def _range(self) -> tuple[float, float]:
        """Return the values at the lower and the upper edge."""
        values = [point.value for point in self.points]
        values += [level.value for level in self.levels]
        values += self.band or ()
        low, high = _cut_off(min(values)), _cut_off(max(values))
        margin = _PADDING * (high / 2 - low / 2) * 2 or _FLAT * abs(high)
        if margin < _SMALLEST:
            margin = 1.0
        return low - margin, high + margin


def _cut_off(value: float) -> float:
    return max(-_LARGEST, min(_LARGEST, value))


def nice_values(low: float, high: float) -> list[float]:
    """Return a few round values between two others, which differ.

    >>> nice_values(403, 480)
    [420.0, 440.0, 460.0, 480.0]
    """
    rough = high / TICKS - low / TICKS
    if not math.isfinite(rough) or rough <= 0:
        return [low, high]
    power = math.floor(math.log10(rough))
    scale = 10.0**power if power > -300 else rough
    step = next((scale * factor for factor in (1, 2, 2.5, 5, 10) if scale * factor >= rough), rough)
    begin = math.ceil(low / step)
    values = (_rounded(step * number, power) for number in range(begin, begin + 2 * TICKS))
    # The edges themselves may be a little off because of rounding.
    return [value for value in values if low - step / 1000 <= value <= high + step / 1000]


def _rounded(value: float, power: int) -> float:
    """Return a multiple of a round step without the error of its multiplication."""
    return round(value, max(0, 2 - power))


def days_between(first: float, last: float, most: int) -> Iterable[float]:
    """Return moments from the first to the last one, evenly spaced, with at most `most` spaces."""
    count = min(most, max(1, round((last - first) / DAY)))
    return [first + (last - first) * number / count for number in range(count + 1)] if last > first else [first]
