"""List what tests measure, page by page, and read the values of many tests at a few commits.

However many numbers a suite has, a page reads a bounded part of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa
from nightjar_formats.model import TargetKey

from bot.results.store.measurements.number_blocks import BLOCK, Decimal, number_in, read_block
from bot.results.store.measurements.write import SuiteMetric, count_of, metrics_of
from bot.results.store.tables import schema
from bot.results.store.tables.names import SuiteRow, all_names
from bot.results.store.tables.points import SuiteOnTarget, select_suites_on_targets

MOST_MATCHES = 2_000
"""The tests that a search for a part of their name finds."""

_MEASUREMENTS, _NUMBERS = schema.measurements, schema.numbers
_HAS_NUMBERS = sa.exists().where(_NUMBERS.c.series_id == schema.series.c.id)


@dataclass(frozen=True, slots=True)
class MeasurementFilter:
    """Which measurements of a suite to list: of tests whose name contains `text`, and with this `name`.

    `text` is in lower case; both are empty for all.
    """

    text: str = ""
    name: str = ""


class TestMetric(NamedTuple):
    """What a test of a suite measures: the ordinal of its name, the metric, and where its numbers are."""

    ordinal: int
    metric: SuiteMetric
    position: int
    base: Decimal


class ListedMetrics(NamedTuple):
    """A part of a list, and how many measurements are on all of it: of at most `MOST_MATCHES` tests, for a text."""

    metrics: Sequence[TestMetric]
    total: int


def measuring_suites(connection: sa.Connection, repository: str) -> list[SuiteOnTarget]:
    """Return the suites on targets that have numbers, by target and suite."""
    return [
        SuiteOnTarget(
            row.id,
            row.suite,
            SuiteRow(row.suite_id, row.names),
            TargetKey(repository, row.lab, row.target),
            row.target_id,
        )
        for row in connection.execute(select_suites_on_targets(repository).where(_HAS_NUMBERS))
    ]


def metric_names(connection: sa.Connection, suite: SuiteRow) -> list[str]:
    """Return the names of what the tests of a suite ever measured, sorted."""
    return sorted({metric.name for metric in metrics_of(connection, suite).values()})


def listed_metrics(
    connection: sa.Connection, suite: SuiteRow, chosen: MeasurementFilter, offset: int, limit: int
) -> ListedMetrics:
    """Return `limit` measurements of a suite from an offset on, by test in the order in which the tests arrived."""
    metrics = metrics_of(connection, suite)
    conditions = [_MEASUREMENTS.c.suite_id == suite.id]
    if chosen.name:
        numbers = [number for number, metric in metrics.items() if metric.name == chosen.name]
        conditions.append(_MEASUREMENTS.c.metric_id.in_(numbers))
    columns = (_MEASUREMENTS.c[name] for name in ("ordinal", "metric_id", "position", "digits", "exponent"))
    ordered = sa.select(*columns).where(*conditions).order_by(_MEASUREMENTS.c.ordinal, _MEASUREMENTS.c.metric_id)
    if not chosen.text:
        total = count_of(connection, suite)
        if chosen.name:
            count = sa.select(sa.func.count()).select_from(_MEASUREMENTS).where(*conditions)
            total = connection.execute(count).scalar_one()
        rows = connection.execute(ordered.offset(offset).limit(limit)).all()
    else:
        matches = _tests_with_text(connection, suite, chosen.text)
        matching_rows = [
            row
            for chunk in schema.in_chunks(matches)
            for row in connection.execute(ordered.where(_MEASUREMENTS.c.ordinal.in_(chunk)))
        ]
        total, rows = len(matching_rows), matching_rows[offset : offset + limit]
    return ListedMetrics(
        [TestMetric(ordinal, metrics[metric], position, Decimal(*base)) for ordinal, metric, position, *base in rows],
        total,
    )


def _tests_with_text(connection: sa.Connection, suite: SuiteRow, text: str) -> list[int]:
    names = enumerate(all_names(connection, suite))
    matches = (ordinal for ordinal, name in names if text in name.lower())
    return [ordinal for ordinal, _ in zip(matches, range(MOST_MATCHES), strict=False)]


def values_at_runs(
    connection: sa.Connection, suite: SuiteOnTarget, metrics: Iterable[TestMetric], runs: Sequence[int]
) -> dict[TestMetric, float]:
    """Return the values of measurements at one commit, whose `runs` are given in their order: the last one counts."""
    by_block: dict[int, list[TestMetric]] = {}
    for metric in metrics:
        by_block.setdefault(metric.position // BLOCK, []).append(metric)
    blobs: dict[int, list[tuple[int, bytes]]] = {}
    blocks = sorted(by_block)
    for chunk in schema.in_chunks(blocks):
        statement = sa.select(_NUMBERS.c.run_id, _NUMBERS.c.block, _NUMBERS.c.numbers).where(
            _NUMBERS.c.series_id == suite.series, _NUMBERS.c.block.in_(chunk), _NUMBERS.c.run_id.in_(runs)
        )
        for run, block, blob in connection.execute(statement):
            blobs.setdefault(run, []).append((block, blob))
    values = {}
    for run in runs:
        for block, blob in blobs.get(run, ()):
            data = read_block(blob)
            for metric in by_block[block]:
                value = number_in(data, metric.position % BLOCK, metric.base)
                if value is not None:
                    values[metric] = value
    return values
