"""List what tests measure, page by page, and read the values of many tests at a few commits.

However many numbers a suite has, a page reads a bounded part of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa
from nightjar_formats.model import TargetKey

from bot.results.store.measurements.number_blocks import BLOCK, Decimal, number_in, numbers_in, read_block
from bot.results.store.measurements.write import SuiteMetric, count_of, metrics_of
from bot.results.store.tables import schema
from bot.results.store.tables.names import MAX_ORDERED_TESTS, SuiteRow, all_names, cache_of, find_ordinal
from bot.results.store.tables.operators import OperatorOrder, order_of
from bot.results.store.tables.points import SuiteOnTarget, select_suites_on_targets

MOST_MATCHES = 2_000
"""The tests that a search for a part of their name finds."""

_METRICS, _MEASUREMENTS, _NUMBERS = schema.metrics, schema.measurements, schema.numbers
_ROWS = sa.select(*(_MEASUREMENTS.c[name] for name in ("ordinal", "metric_id", "position", "digits", "exponent")))
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


def names_of_suites(connection: sa.Connection, suites: Iterable[SuiteRow]) -> set[str]:
    """Return the names of what the tests of several suites ever measured."""
    return {
        name
        for chunk in schema.in_chunks(sorted({suite.id for suite in suites}))
        for name in connection.execute(
            sa.select(_METRICS.c.name).distinct().where(_METRICS.c.suite_id.in_(chunk))
        ).scalars()
    }


def listed_metrics(
    connection: sa.Connection, suite: SuiteRow, chosen: MeasurementFilter, offset: int, limit: int
) -> ListedMetrics:
    """Return `limit` measurements of a suite from an offset on, by test in the order in which the tests arrived."""
    metrics = metrics_of(connection, suite)
    conditions = [_MEASUREMENTS.c.suite_id == suite.id]
    if chosen.name:
        conditions.append(_MEASUREMENTS.c.metric_id.in_(_numbers_of(metrics, chosen.name)))
    ordered = _ROWS.where(*conditions).order_by(_MEASUREMENTS.c.ordinal, _MEASUREMENTS.c.metric_id)
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
    return ListedMetrics([_test_metric(metrics, row) for row in rows], total)


def operator_order(connection: sa.Connection, suite: SuiteRow, measurement: str) -> OperatorOrder:
    """Return the tests of a suite that ever had a measurement with this name.

    The order is cached until a test of the suite measures something new: only then are its rows read.
    """
    cache, key, count = cache_of(connection), (suite.id, measurement), count_of(connection, suite)
    with cache.lock:
        cached = cache.orders.get(key)
    if cached is not None and cached.measurements == count:
        return cached
    numbers = _numbers_of(metrics_of(connection, suite), measurement)
    if not numbers:  # not cached: anybody can request the map of any name
        return order_of((), ())
    statement = sa.select(_MEASUREMENTS.c.ordinal).where(
        _MEASUREMENTS.c.suite_id == suite.id, _MEASUREMENTS.c.metric_id.in_(numbers)
    )
    # Somebody else may have added names since the row of the suite was read.
    tests = sorted({test for test in connection.execute(statement).scalars() if test < suite.names})
    order = order_of(tests, all_names(connection, suite))._replace(measurements=count)
    with cache.lock:
        # The cache raises ValueError for a value that is larger than itself.
        if len(order.tests) <= MAX_ORDERED_TESTS:
            cache.orders[key] = order
    return order


def metrics_of_tests(
    connection: sa.Connection, suite: SuiteRow, measurement: str, tests: Sequence[int]
) -> list[TestMetric]:
    """Return the measurements with a name of some tests, which are given by their ordinals, in this order."""
    metrics = metrics_of(connection, suite)
    numbers = _numbers_of(metrics, measurement)
    of_test: dict[int, list[TestMetric]] = {test: [] for test in tests}
    for chunk in schema.in_chunks(tests):
        of_chunk = (_MEASUREMENTS.c.ordinal.in_(chunk), _MEASUREMENTS.c.metric_id.in_(numbers))
        for row in connection.execute(_ROWS.where(_MEASUREMENTS.c.suite_id == suite.id, *of_chunk)):
            of_test[row.ordinal].append(_test_metric(metrics, row))
    return [
        metric
        for test_metrics in of_test.values()
        for metric in sorted(test_metrics, key=lambda metric: metric.position)
    ]


def _numbers_of(metrics: Mapping[int, SuiteMetric], name: str) -> list[int]:
    return [number for number, metric in metrics.items() if metric.name == name]


def _test_metric(metrics: Mapping[int, SuiteMetric], row: sa.Row[tuple[int, ...]]) -> TestMetric:
    return TestMetric(row.ordinal, metrics[row.metric_id], row.position, Decimal(row.digits, row.exponent))


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
    values = dict[TestMetric, float]()
    for run in runs:
        for block, blob in blobs.get(run, ()):
            numbers = numbers_in(
                read_block(blob), [(metric.position % BLOCK, metric.base) for metric in by_block[block]]
            )
            values |= {
                metric: value for metric, value in zip(by_block[block], numbers, strict=True) if value is not None
            }
    return values


def newest_numbers(
    connection: sa.Connection, suite: SuiteRow, test: str, runs_of: Mapping[int, Sequence[int]]
) -> dict[int, list[tuple[SuiteMetric, float]]]:
    """Return what a test measured in some runs, by series, sorted; `runs_of` has the runs of few series, in order."""
    ordinal = find_ordinal(connection, suite, test)
    numbers = sorted({run for runs in runs_of.values() for run in runs})
    if ordinal is None or not numbers:
        return {}
    statement = sa.select(_MEASUREMENTS).filter_by(suite_id=suite.id, ordinal=ordinal)
    rows = connection.execute(statement).all()
    if not rows:
        return {}
    metrics = metrics_of(connection, suite)
    blocks = sorted({row.position // BLOCK for row in rows})
    # All three are named, so that each block is looked up.
    of_runs = sa.select(_NUMBERS).where(
        _NUMBERS.c.series_id.in_(sorted(runs_of)), _NUMBERS.c.block.in_(blocks), _NUMBERS.c.run_id.in_(numbers)
    )
    blobs = {(blob.run_id, blob.block): read_block(blob.numbers) for blob in connection.execute(of_runs)}
    measured: dict[int, list[tuple[SuiteMetric, float]]] = {}
    for series, runs in runs_of.items():
        values = {
            metrics[row.metric_id]: value
            for run in runs
            for row in rows
            if (data := blobs.get((run, row.position // BLOCK))) is not None
            and (value := number_in(data, row.position % BLOCK, Decimal(row.digits, row.exponent))) is not None
        }
        if values:
            measured[series] = sorted(values.items())
    return measured
