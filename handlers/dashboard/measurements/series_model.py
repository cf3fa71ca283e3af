"""The data that the page of a measurement shows."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from typing import Annotated

from markupsafe import Markup
from nightjar_formats.limits import MAX_MEASUREMENT_NAME
from nightjar_formats.measurements import Better
from nightjar_formats.text_enum import TextEnum
from pydantic import BaseModel, Field, StringConstraints

from bot.core.listing import counted
from bot.core.utc import datetime_of
from bot.results.measurements.moved import MovedSeries
from bot.results.measurements.texts import number_text
from bot.results.state import CommitSummary
from bot.results.store.measurements.search import GONE
from bot.web.answers import AnswerPart
from bot.web.page_filters import date, short
from handlers.dashboard.measurements import texts
from handlers.dashboard.measurements.chart import ChartLevel, ChartMark, SeriesChart, SeriesPoint
from handlers.dashboard.shared.settings import TARGET_PATTERN

MeasurementName = Annotated[str, StringConstraints(max_length=MAX_MEASUREMENT_NAME)]
TABLE_NIGHTS, TABLE_NIGHTS_BESIDE_OTHERS = 100, 30
"""The newest nights that the page lists in a table, of one series and of each of several; its twin has all."""
PHONE = 330
"""Pixels of the width of a chart on a phone."""
NARROW = 480
"""Pixels of the width of a chart that stands beside others."""


class SeriesQuery(BaseModel, extra="forbid"):
    """The measurement to show."""

    id: Annotated[str, StringConstraints(max_length=4000)] = Field(description="The test's ID.")
    measurement: MeasurementName = Field(description="The name of the measurement, such as latency.")
    target: Annotated[str, StringConstraints(pattern=TARGET_PATTERN)] | None = Field(
        default=None, description="Only this target, as LAB/TARGET; with more nights."
    )


class ChangeKind(TextEnum):
    """What a change of a series means."""

    WORSE = "worse"
    BETTER = "better"
    NEITHER = "neither"


def kind_of(better: Better, *, is_rise: bool) -> ChangeKind:
    """Say what a rise or a fall of a measurement means."""
    if better is Better.NONE:
        return ChangeKind.NEITHER
    return ChangeKind.BETTER if is_rise == (better is Better.HIGHER) else ChangeKind.WORSE


class SeriesNight(BaseModel, extra="forbid"):
    """The value at a nightly commit."""

    sha: str
    committed_at: datetime
    value: float


class SeriesMove(BaseModel, extra="forbid"):
    """A change of the level of a series, as the search for changes stored it. Levels are in the unit of the series."""

    since: str = Field(description="The nightly commit with which the new level begins.")
    since_at: datetime
    good: str = Field(description="The last nightly commit before it.")
    confirmed_in: str = Field(description="The commit whose night confirmed the change.")
    confirmed_at: datetime
    level_before: float
    level_after: float
    low: float = Field(description="The new level is between `low` and `high` with 95 % confidence.")
    high: float
    ended_in: str = Field(
        description="The commit with which the level moved back, or nothing was measured for a week; empty before."
    )
    kind: ChangeKind
    text: str = Field(description="The change in a line.")

    @classmethod
    def fields_of(cls, move: MovedSeries) -> dict[str, object]:
        """Return the fields for a stored change."""
        return {
            "since": move.since,
            "since_at": datetime_of(move.since_at),
            "good": move.good,
            "confirmed_in": move.confirmed_in,
            "confirmed_at": datetime_of(move.confirmed_at),
            "level_before": move.before,
            "level_after": move.after,
            "low": move.low,
            "high": move.high,
            "ended_in": move.ended_in,
            "kind": kind_of(move.better, is_rise=move.is_rise),
            "text": move.text,
        }

    @property
    def css_class(self) -> str:
        """Return the class of its mark in a chart."""
        return {ChangeKind.WORSE: "bad", ChangeKind.BETTER: "good"}.get(self.kind, "")


class SeriesOnTarget(BaseModel, extra="forbid"):
    """A measurement of a test in one suite on one target; `nights` are newest first."""

    lab: str
    target: str
    suite: str
    unit: str
    better: str = Field(description="Which values are better: lower, higher, or empty if nobody said.")
    exact: bool = Field(description="Whether the number has no noise, so that each change is a fact.")
    level: float | None = Field(description="The present level; null with too few nights.")
    expected_low: float | None = Field(description="The next value is from here ...")
    expected_high: float | None = Field(description="... to here, in 99 of 100 cases; null with too few nights.")
    moves: list[SeriesMove] = Field(description="The changes of the level, newest first.")
    nights: list[SeriesNight]
    earlier_unit: bool = Field(description="Whether earlier nights have another unit; they are left out.")
    gone: bool = Field(description=f"Whether nothing was measured in the newest {GONE} nights of the suite.")

    @property
    def name(self) -> str:
        """Return its target as LAB/TARGET."""
        return f"{self.lab}/{self.target}"

    @property
    def lasting(self) -> SeriesMove | None:
        """Return the newest change if it has not ended."""
        return self.moves[0] if self.moves and not self.moves[0].ended_in else None

    @property
    def lowest(self) -> str:
        """Return the lowest value with its unit."""
        return self.amount(min(night.value for night in self.nights))

    @property
    def highest(self) -> str:
        """Return the highest value with its unit."""
        return self.amount(max(night.value for night in self.nights))

    def amount(self, value: float) -> str:
        """Write a value with its unit."""
        return f"{number_text(value)} {self.unit}".rstrip()

    def chart(self, measurement: str, summaries: dict[str, CommitSummary], *, narrow: bool) -> Markup:
        """Draw the series, for a wide screen and for a phone; nothing for fewer than two nights."""
        nights = list(reversed(self.nights))
        if len(nights) < 2:
            return Markup("")
        first, last = nights[0].committed_at.timestamp(), nights[-1].committed_at.timestamp()
        moves = [move for move in reversed(self.moves) if move.since_at >= nights[0].committed_at]
        edges = [first, *(move.since_at.timestamp() for move in moves), last]
        values = [*(move.level_before for move in moves), *([] if self.level is None else [self.level])]
        levels = [ChartLevel(begin, end, value) for (begin, end), value in zip(pairwise(edges), values, strict=False)]
        low, high = self.expected_low, self.expected_high
        drawn = SeriesChart(
            label=self._label(measurement, moves),
            unit=self.unit,
            points=[
                SeriesPoint(night.committed_at.timestamp(), night.value, self._title(night, summaries))
                for night in nights
            ],
            levels=levels,
            marks=[
                ChartMark(
                    move.since_at.timestamp(),
                    move.css_class,
                    texts.MARK.format(text=move.text, sha=short(move.since)),
                )
                for move in moves
            ],
            band=None if low is None or high is None else (low, high),
            band_begin=edges[-2],
            width=NARROW if narrow else 760,
        )
        return drawn.svg() + replace(drawn, kind="narrow", width=PHONE).svg()

    def _title(self, night: SeriesNight, summaries: dict[str, CommitSummary]) -> str:
        summary, value = summaries.get(night.sha), self.amount(night.value)
        if summary is None or not summary.title:
            return texts.POINT.format(sha=short(night.sha), value=value)
        return texts.POINT_WITH_TITLE.format(sha=short(night.sha), value=value, title=summary.title)

    def _label(self, measurement: str, moves: list[SeriesMove]) -> str:
        label = texts.CHART.format(
            name=measurement,
            nights=counted(len(self.nights), "nightly commit"),
            first=date(self.nights[-1].committed_at),
            last=date(self.nights[0].committed_at),
            lowest=self.lowest,
            highest=self.highest,
        )
        if self.level is not None and not self.exact:
            label += texts.CHART_LEVEL.format(level=self.amount(self.level))
        if self.expected_low is not None and self.expected_high is not None:
            low, high = self.amount(self.expected_low), self.amount(self.expected_high)
            label += texts.CHART_BAND.format(low=low, high=high)
        if moves:
            described = [texts.MARK.format(text=move.text, sha=short(move.since)) for move in moves]
            label += texts.CHART_CHANGES.format(changes="; ".join(described))
        return label


class SeriesPage(BaseModel, extra="forbid"):
    """What a test measures, on all targets or on one."""

    answer: list[AnswerPart] = Field(default=[], description="What changed, by how much and since when, as a sentence.")
    next_steps: list[list[AnswerPart]] = Field(default=[], description="What a reader can do, each as a sentence.")
    known_commits: dict[str, CommitSummary] = Field(
        default={}, description="Titles, authors and pull requests of commits on the page, where they are known."
    )
    id: str
    measurement: str
    other_names: list[str] = Field(description="The names of what else the test measures.")
    targets: list[SeriesOnTarget]
    more_targets: list[str] = Field(description="Further targets whose suites have the test, as LAB/TARGET.")

    def listed(self, series: SeriesOnTarget) -> list[SeriesNight]:
        """Return the nights of a series that the page lists."""
        return series.nights[: TABLE_NIGHTS if len(self.targets) == 1 else TABLE_NIGHTS_BESIDE_OTHERS]
