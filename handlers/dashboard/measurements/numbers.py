"""The numbers of a test or of a run, for pages about other things; each leads to the page of its series."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from nightjar_formats.model import RunKey
from pydantic import BaseModel, Field

from bot.results.measurements.texts import number_text
from bot.results.store.measurements.lists import MeasurementFilter, listed_metrics, newest_numbers, values_at_runs
from bot.results.store.measurements.write import SuiteMetric
from bot.results.store.tables import runs
from bot.results.store.tables.names import SuiteRow, all_names
from bot.results.store.tables.points import suites_on_targets

MOST_OF_RUN = 10
"""The most numbers of a run that its page shows."""
MOST_READ = 500
"""A run may be one of many shards: so many measurements of its suite are looked for in it."""
MOST_SERIES = 20
"""The most targets for which the page of a test shows numbers."""


class TestNumber(BaseModel, extra="forbid"):
    """What a test measured once."""

    test: str
    measurement: str
    value: float
    unit: str
    better: str = Field(description="Which values are better: lower, higher, or empty if nobody said.")

    @property
    def amount(self) -> str:
        """Return the value with its unit."""
        return f"{number_text(self.value)} {self.unit}".rstrip()


def numbers_of_test(
    connection: sa.Connection, suite: SuiteRow, test: str, runs_of: Mapping[int, Sequence[int]]
) -> dict[int, list[TestNumber]]:
    """Return what a test of a suite measured in runs, which are given by series; the last run of a series counts."""
    first = dict(list(runs_of.items())[:MOST_SERIES])
    return {
        series: [_number(test, metric, value) for metric, value in numbers]
        for series, numbers in newest_numbers(connection, suite, test, first).items()
    }


def numbers_of_run(connection: sa.Connection, key: RunKey) -> tuple[list[TestNumber], bool]:
    """Return the first numbers of a stored run, and whether it may have more."""
    stored = runs.find(connection, key)
    claims = stored[1].claims if stored else None
    if stored is None or claims is None:
        return [], False
    suites = suites_on_targets(connection, key.repository, key.lab, key.target, claims.suite)
    if not suites:
        return [], False
    names, numbers = all_names(connection, suites[0].row), list[TestNumber]()
    # Most runs have the first ones.
    for limit in (MOST_OF_RUN + 1, MOST_READ):
        listed = listed_metrics(connection, suites[0].row, MeasurementFilter(), 0, limit)
        values = values_at_runs(connection, suites[0], listed.metrics, [stored[0]])
        numbers = [
            _number(names[metric.ordinal], metric.metric, values[metric])
            for metric in listed.metrics
            if metric in values
        ]
        if len(numbers) > MOST_OF_RUN or listed.total <= len(listed.metrics):
            break
    return numbers[:MOST_OF_RUN], len(numbers) > MOST_OF_RUN or listed.total > len(listed.metrics)


def _number(test: str, metric: SuiteMetric, value: float) -> TestNumber:
    return TestNumber(test=test, measurement=metric.name, value=value, unit=metric.unit, better=metric.better.value)
