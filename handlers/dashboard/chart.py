"""Compute the coordinates of a small chart: the duration of a test by commit. No I/O."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median

from markupsafe import Markup, escape
from pydantic import BaseModel

from bot.web.page_filters import duration, short

WIDTH, HEIGHT = 640, 110
LEFT, RIGHT, TOP, BOTTOM = 8, 8, 20, 16
LEAST_POINTS = 2


class ChartPoint(BaseModel, extra="forbid"):
    """The point of a commit, in the coordinates of the chart; `bad` if the test failed there."""

    x: float
    y: float
    bad: bool
    sha: str
    seconds: float


class DurationChart(BaseModel, extra="forbid"):
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
    points = [
        ChartPoint(
            x=round(LEFT + across * index / (len(timed) - 1), 1),
            y=round(TOP + down * (1 - seconds / longest), 1),
            bad=bad,
            sha=sha,
            seconds=seconds,
        )
        for index, (sha, seconds, bad) in enumerate(timed)
    ]
    return DurationChart(
        width=WIDTH,
        height=HEIGHT,
        base=HEIGHT - BOTTOM,
        line=" ".join(f"{point.x},{point.y}" for point in points),
        points=points,
        longest=longest,
        shortest=min(seconds for _, seconds, _ in timed),
        median=median(seconds for _, seconds, _ in timed),
    )


def _dot(point: ChartPoint) -> str:
    label = f"{short(point.sha)}: {duration(point.seconds)}{', failed' if point.bad else ''}"
    kind, radius = (" bad", 4) if point.bad else ("", 2.5)
    circle = f'<circle class="dot{kind}" cx="{point.x}" cy="{point.y}" r="{radius}">'
    return f"{circle}<title>{escape(label)}</title></circle>"
