"""What tests measured at two commits of a target: what differs most, and whether noise explains it."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import sqlalchemy as sa
from nightjar_formats.measurements import Measurement
from pydantic import BaseModel, Field

from bot.results.measurements.texts import number_text
from bot.results.store.measurements.lists import (
    MeasurementFilter,
    TestMetric,
    listed_metrics,
    measuring_suites,
    values_at_runs,
)
from bot.results.store.measurements.read import series_on_target
from bot.results.store.tables.names import all_names
from bot.results.store.tables.runs import numbers_of, stored_runs
from handlers.dashboard.measurements.analysis import analysed, in_newest_unit
from handlers.dashboard.measurements.series_model import ChangeKind, kind_of
from handlers.dashboard.measurements.series_page import least_change
from handlers.results.config import RENAMES

if TYPE_CHECKING:
    from nightjar_formats.model import TargetKey

    from bot.config.model import RepositoryConfig
    from bot.results.store.lists.commits_with_results import CommitWithResults
    from bot.results.store.tables.points import SuiteOnTarget

MOST_SUITES = 4
MOST_COMPARED = 5_000
"""The most measurements of a suite that are compared."""
MOST_JUDGED = 30
"""So many of the largest differences are compared with the noise of their series, for a page."""
NIGHTS = 60
"""The newest nights of which the noise is known."""


class ComparedNumber(BaseModel, extra="forbid"):
    """A measurement of a test that differs between the commits."""

    suite: str
    test: str
    measurement: str
    unit: str
    base_value: float
    head_value: float
    kind: ChangeKind = Field(description="What the difference means.")
    low: float | None = Field(description="At the base, values from here ...")
    high: float | None = Field(description="... to here were expected; null if the nights before say too little.")
    outside: bool | None = Field(description="Whether noise does not explain the difference; null if that is unknown.")

    @property
    def words(self) -> str:
        """Return both values, and by how much they differ."""
        share = (
            f", {100 * (self.head_value / self.base_value - 1):+.1f} %"
            if self.base_value > 0 and self.head_value > 0
            else ""
        )
        return f"{number_text(self.base_value)} -> {number_text(self.head_value)} {self.unit}".rstrip() + share

    @property
    def expected(self) -> str:
        """Return which values were expected."""
        if self.low is None or self.high is None:
            return ""
        return f"{number_text(self.low)} to {number_text(self.high)}"


class _Difference(NamedTuple):
    suite: SuiteOnTarget
    metric: TestMetric
    base_value: float
    head_value: float

    @property
    def is_exact(self) -> bool:
        return Measurement("", self.head_value, self.metric.metric.unit).is_exact

    @property
    def size(self) -> float:
        """The difference as a share, the same in both directions."""
        if min(self.base_value, self.head_value) > 0:
            return abs(math.log(self.head_value) - math.log(self.base_value))
        return 4 * abs(self.head_value / 2 - self.base_value / 2) / max(abs(self.head_value), abs(self.base_value))


def compared_numbers(
    connection: sa.Connection,
    target: TargetKey,
    base: CommitWithResults,
    head: CommitWithResults,
    settings: RepositoryConfig,
    most: int,
) -> list[ComparedNumber]:
    """Return the `most` largest differences of a target between two commits: first those that noise does not explain.

    MOST_JUDGED of them are compared with the noise.
    """
    suites = [suite for suite in measuring_suites(connection, target.repository) if suite.target == target]
    differences: list[_Difference] = []
    for suite in suites[:MOST_SUITES]:
        metrics = listed_metrics(connection, suite.row, MeasurementFilter(), 0, MOST_COMPARED).metrics
        places = {sha: suite.place_at(sha) for sha in (base.sha, head.sha)}
        runs = numbers_of(stored_runs(connection, places.values()))
        base_values, head_values = (
            values_at_runs(connection, suite, metrics, runs.get(places[sha], ())) for sha in (base.sha, head.sha)
        )
        differences += (
            _Difference(suite, metric, value, head_values[metric])
            for metric, value in base_values.items()
            if metric in head_values and head_values[metric] != value
        )
    # What is exact needs no statistics.
    differences.sort(key=lambda difference: (not difference.is_exact, -difference.size))
    judged, numbers = frozenset(differences[:MOST_JUDGED]), list[ComparedNumber]()
    for suite in suites[:MOST_SUITES]:
        of_suite = [row for row in differences[:most] if row.suite == suite]
        numbers += _judged(connection, of_suite, judged, base, settings)
    return sorted(numbers, key=lambda number: number.outside is not True)


def _judged(
    connection: sa.Connection,
    rows: Sequence[_Difference],
    judged: Collection[_Difference],
    base: CommitWithResults,
    settings: RepositoryConfig,
) -> list[ComparedNumber]:
    """Return differences of one suite; the judged ones with the values that its nights up to the base let expect."""
    if not rows:
        return []
    suite = rows[0].suite
    names = all_names(connection, suite.row)
    noisy = {(row.metric.ordinal, row.metric.metric.name) for row in rows if row in judged and not row.is_exact}
    nights_of = series_on_target(connection, suite, noisy, settings.of(RENAMES).aliases, NIGHTS) if noisy else {}
    numbers = []
    for row in rows:
        metric = row.metric.metric
        nights = [
            night
            for night in nights_of.get((row.metric.ordinal, metric.name), ())
            if (night.committed_at, night.sha) <= (base.committed_at, base.sha)
        ]
        least = least_change(settings, suite.target, metric.name, metric.unit)
        predicted = analysed(in_newest_unit(nights), least).predicted if nights else None
        low, high = predicted or (None, None)
        outside = True if row.is_exact else not predicted[0] <= row.head_value <= predicted[1] if predicted else None
        numbers.append(
            ComparedNumber(
                suite=suite.name,
                test=names[row.metric.ordinal],
                measurement=metric.name,
                unit=metric.unit,
                base_value=row.base_value,
                head_value=row.head_value,
                kind=kind_of(metric.better, is_rise=row.head_value > row.base_value),
                low=low,
                high=high,
                outside=outside,
            )
        )
    return numbers
