"""Draw small charts: the duration of a test by commit, and lines as high as a word. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import NamedTuple

from markupsafe import Markup

from bot.web.page_filters import duration, short_html
from handlers.dashboard.shared import texts

WIDTH, HEIGHT = 640, 110
LEFT, RIGHT, TOP, BOTTOM = 8, 8, 20, 16
LEAST_POINTS = 2
SPARK_WIDTH, SPARK_HEIGHT, SPARK_MARGIN = 56, 14, 2
SPARK = Markup(
    '<svg class="chart spark" role="img" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
    '<title>{label}</title><polyline class="line" points="{line}"/></svg>'
)


class ChartPoint(NamedTuple):
    """The point of a commit, in the coordinates of the chart; `bad` if the test failed there."""

    x: float
    y: float
    bad: bool
    sha: str
    seconds: float


@dataclass(frozen=True, slots=True)
class DurationChart:
    """A chart: its points, oldest first, and the durations in seconds that the page names beside it."""

    width: int
    height: int
    base: float
    line: str
    points: list[ChartPoint]
    longest: float
    shortest: float
    median: float

    @property
    def dots(self) -> Markup:
        """Write the points as SVG circles."""
        # A template would take ten times as long for the many points of a page.
        return Markup("".join(map(_dot, self.points)))  # noqa: S704 (escaped in _dot)


def duration_chart(durations: Sequence[tuple[str, float | None, bool]]) -> DurationChart | None:
    """Return the chart of commits, each with its seconds and whether the test failed; they are given oldest first.

    Returns None if fewer than two commits have a duration, or if all durations are 0.
    """
    timed = [(sha, seconds, bad) for sha, seconds, bad in durations if seconds is not None]
    longest = max((seconds for _, seconds, _ in timed), default=0.0)
    if len(timed) < LEAST_POINTS or not longest:
        return None
    across, down = WIDTH - LEFT - RIGHT, HEIGHT - TOP - BOTTOM
    steps = len(timed) - 1
    points = [
        ChartPoint(
            round(LEFT + across * index / steps, 1), round(TOP + down * (1 - seconds / longest), 1), bad, sha, seconds
        )
        for index, (sha, seconds, bad) in enumerate(timed)
    ]
    return DurationChart(
        width=WIDTH,
        height=HEIGHT,
        base=float(HEIGHT - BOTTOM),
        line=" ".join(f"{point.x},{point.y}" for point in points),
        points=points,
        longest=longest,
        shortest=min(seconds for _, seconds, _ in timed),
        median=median(seconds for _, seconds, _ in timed),
    )


def sparkline(values: Sequence[float | None], label: str) -> Markup:
    """Draw values, oldest first, as a line as high as a word; `label` says the same in words.

    A value that is None leaves its place out. Returns nothing for fewer than two values.
    """
    placed = [(index, value) for index, value in enumerate(values) if value is not None]
    if len(placed) < LEAST_POINTS:
        return Markup("")
    lowest, highest = min(value for _, value in placed), max(value for _, value in placed)
    across, down = SPARK_WIDTH - 2 * SPARK_MARGIN, SPARK_HEIGHT - 2 * SPARK_MARGIN
    height = highest / 2 - lowest / 2  # halves: the difference of two doubles may be infinite
    line = " ".join(
        f"{SPARK_MARGIN + across * index / (len(values) - 1):.1f},"
        f"{SPARK_MARGIN + down * ((highest / 2 - value / 2) / height if height else 0.5):.1f}"
        for index, value in placed
    )
    return SPARK.format(width=SPARK_WIDTH, height=SPARK_HEIGHT, label=label, line=line)


def pass_rate_line(rates: Sequence[float | None]) -> Markup:
    """Draw the pass rates of commits, oldest first, each from 0 to 1."""
    present = [rate for rate in rates if rate is not None]
    if not present:
        return Markup("")
    label = texts.RATES_OF_COMMITS.format(
        commits=len(present),
        lowest=_percent(min(present)),
        highest=_percent(max(present)),
        newest=_percent(present[-1]),
    )
    return sparkline(rates, label)


def duration_line(seconds: Sequence[float | None]) -> Markup:
    """Draw how long the runs of commits took, oldest first."""
    present = [value for value in seconds if value is not None]
    if not present:
        return Markup("")
    label = texts.SECONDS_OF_COMMITS.format(
        commits=len(present),
        shortest=duration(min(present)),
        longest=duration(max(present)),
        newest=duration(present[-1]),
    )
    return sparkline(seconds, label)


def _percent(rate: float) -> str:
    # Rounded down: 100 % means that no test failed.
    return f"{int(rate * 1000) / 10:.1f} %"


def _dot(point: ChartPoint) -> str:
    x, y, bad, sha, seconds = point
    label = f"{short_html(sha)}: {duration(seconds)}{', failed' if bad else ''}"
    kind, radius = (" bad", 4) if bad else ("", 2.5)
    return f'<circle class="dot{kind}" cx="{x}" cy="{y}" r="{radius}"><title>{label}</title></circle>'
