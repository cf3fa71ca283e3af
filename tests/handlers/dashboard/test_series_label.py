"""The chart of a measurement for people who cannot see it: its label, and the titles of its points."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from xml.etree import ElementTree

from bot.results.state import CommitSummary
from handlers.dashboard.measurements.series_model import ChangeKind, SeriesMove, SeriesNight, SeriesOnTarget

FIRST = datetime(2026, 11, 20, tzinfo=UTC)
NIGHTS = [
    SeriesNight(sha=f"{day}" * 40, committed_at=FIRST + timedelta(days=day), value=value)
    for day, value in enumerate((410.0, 414.0, 467.0))
]
MOVE = SeriesMove(
    since="2" * 40,
    since_at=NIGHTS[2].committed_at,
    good="1" * 40,
    confirmed_in="2" * 40,
    confirmed_at=NIGHTS[2].committed_at,
    level_before=412.0,
    level_after=467.0,
    low=460.0,
    high=474.0,
    ended_in="",
    kind=ChangeKind.WORSE,
    text="latency 412 -> 467 ms",
)
SERIES = SeriesOnTarget(
    lab="example-lab",
    target="hexagon-v73",
    suite="operators",
    unit="ms",
    better="lower",
    exact=False,
    level=467.0,
    expected_low=455.0,
    expected_high=479.0,
    moves=[MOVE],
    nights=NIGHTS[::-1],
    earlier_unit=False,
    gone=False,
)


def charts_of(series: SeriesOnTarget, summaries: dict[str, CommitSummary] | None = None) -> list[ElementTree.Element]:
    """Return the drawings of a series."""
    drawn = series.chart("latency", summaries or {}, narrow=False)
    return [ElementTree.fromstring(svg) for svg in re.findall(r"<svg.*?</svg>", drawn, re.DOTALL)]


def label_of(**changed: object) -> str:
    """Return the label of the chart of a series with other values."""
    labels = {chart.get("aria-label", "") for chart in charts_of(SERIES.model_copy(update=changed))}
    (label,) = labels
    return label


def test_the_label_of_a_chart_says_what_it_shows() -> None:
    values = "latency at 3 nightly commits, 2026-11-20 to 2026-11-22: from 410 ms to 467 ms"
    band = "; 99 of 100 further values are expected from 455 ms to 479 ms"
    change = "; latency 412 -> 467 ms, since 2222222"
    assert label_of() == f"{values}, now about 467 ms{band}{change}"
    assert label_of(exact=True) == f"{values}{band}{change}"
    assert label_of(level=None) == f"{values}{band}{change}"
    assert label_of(expected_low=None) == f"{values}, now about 467 ms{change}"
    assert label_of(expected_high=None) == f"{values}, now about 467 ms{change}"
    assert label_of(moves=[]) == f"{values}, now about 467 ms{band}"
    earlier = MOVE.model_copy(update={"since": "1" * 40, "since_at": NIGHTS[1].committed_at, "text": "it fell"})
    assert label_of(moves=[MOVE, earlier]).endswith(f"; it fell, since 1111111{change}")


def test_a_change_before_the_first_night_is_not_drawn() -> None:
    before = MOVE.model_copy(update={"since_at": FIRST - timedelta(days=1)})
    at_once = MOVE.model_copy(update={"since_at": FIRST})
    assert "since" not in label_of(moves=[before])
    assert "since" in label_of(moves=[at_once])


def test_each_point_names_its_commit_its_value_and_its_title_where_there_is_a_pointer() -> None:
    summary = CommitSummary("Tile *conv2d*", "octocat", 0)
    wide, narrow = charts_of(SERIES, {"1" * 40: summary, "2" * 40: replace(summary, title="")})
    titles = [[title.text for dot in chart.iter() for title in dot.findall("title")] for chart in (wide, narrow)]
    change = "latency 412 -> 467 ms, since 2222222"
    assert titles == [[change, "0000000: 410 ms", "1111111: 414 ms, Tile *conv2d*", "2222222: 467 ms"], [change]]


def test_one_night_has_no_chart() -> None:
    assert charts_of(SERIES.model_copy(update={"nights": NIGHTS[:1]})) == []
    assert len(charts_of(SERIES.model_copy(update={"nights": NIGHTS[1::-1], "moves": []}))) == 2
