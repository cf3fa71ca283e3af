"""Read what tests measured: one measurement over the nightly commits, all of a run, and which ones a target has.

No statement scans a table: a series of a thousand nights is read from a thousand blocks, by two statements.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa
from nightjar_formats.measurements import Better, Measurement
from nightjar_formats.model import RunKey, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.store.history.series_names import series_names
from bot.results.store.measurements.number_blocks import BLOCK, Decimal, read_block
from bot.results.store.measurements.write import Metric, blocks_of_runs, count_of, metrics_of, placed_measurements
from bot.results.store.tables import names, runs, schema
from bot.results.store.tables.names import SuiteRow, all_names, find_ordinal
from bot.results.store.tables.points import (
    Position,
    SuiteOnTarget,
    newest_points,
    stored_runs,
    suites_on_targets,
)

NIGHTS = 1_000
"""The newest nightly commits of which a series is read."""


@dataclass(frozen=True, slots=True)
class MeasuredNight:
    """What a test measured at a nightly commit. `committed_at` is in seconds since 1970.

    `unit` and `better` are those of that night: they may have changed since.
    """

    sha: str
    committed_at: float
    value: float
    unit: str
    better: Better


class _Stored(NamedTuple):
    """Where the numbers of a measurement are, and what its test was called: `ordinal`."""

    ordinal: int
    metric: Metric
    position: int
    base: Decimal


_POINTS, _RUNS, _NUMBERS, _MEASUREMENTS = schema.points, schema.runs, schema.numbers, schema.measurements
_OF_TESTS = sa.select(
    *(_MEASUREMENTS.c[name] for name in ("ordinal", "metric_id", "position", "digits", "exponent"))
).where(
    _MEASUREMENTS.c.suite_id == sa.bindparam("suite"),
    _MEASUREMENTS.c.ordinal.in_(sa.bindparam("ordinals", expanding=True)),
)
_NEWER = schema.points.alias()
_OLDEST = (
    sa.select(_NEWER.c.committed_at)
    .where(_NEWER.c.series_id == sa.bindparam("series"), _NEWER.c.linked)
    .order_by(_NEWER.c.committed_at.desc(), _NEWER.c.sha.desc())
    .limit(1)
    .offset(sa.bindparam("others"))
    .scalar_subquery()
)
_NIGHTS = (
    sa.select(_POINTS.c.committed_at, _POINTS.c.sha, _RUNS.c.id, _NUMBERS.c.block, _NUMBERS.c.numbers)
    .join(_RUNS, sa.and_(_RUNS.c.target_id == sa.bindparam("target"), _RUNS.c.sha == _POINTS.c.sha))
    .join(_NUMBERS, sa.and_(_NUMBERS.c.series_id == _POINTS.c.series_id, _NUMBERS.c.run_id == _RUNS.c.id))
    .where(_POINTS.c.series_id == sa.bindparam("series"), _POINTS.c.linked)
    .where(_POINTS.c.committed_at >= sa.func.coalesce(_OLDEST, 0.0))
    .where(_NUMBERS.c.block.in_(sa.bindparam("blocks", expanding=True)))
)


def metrics_of_test(connection: sa.Connection, repository: str, suite: str, test_id: str) -> list[Metric]:
    """Return what a test ever measured under its present name, on any target, sorted."""
    row = names.find(connection, repository, suite)
    ordinal = None if row is None else find_ordinal(connection, row, test_id)
    if row is None or ordinal is None:
        return []
    return sorted(stored.metric for stored in _stored(connection, row, [ordinal]))


def measured_series(
    connection: sa.Connection,
    target: TargetKey,
    suite: str,
    test_id: str,
    name: str,
    aliases: Aliases = NO_ALIASES,
    limit: int = NIGHTS,
) -> list[MeasuredNight]:
    """Return the measurement `name` of a test at the newest `limit` nightly commits, oldest first.

    The test is followed under its earlier names, as its outcomes are. Nights without the measurement are left out. Of
    several runs of a commit, the last one that has it counts.
    """
    found = suites_on_targets(connection, target.repository, target.lab, target.target, suite)
    ordinal = find_ordinal(connection, found[0].row, test_id) if found else None
    if not found or ordinal is None:
        return []
    on_target = found[0]
    names_then = series_names(connection, on_target.series, all_names(connection, on_target.row), aliases, [ordinal])
    spans = defaultdict[int, list[tuple[Position, Position]]](list)
    for ordinal_then, since, until in names_then.spans(ordinal):
        spans[ordinal_then].append((since, until))
    by_block = defaultdict[int, list[_Stored]](list)
    for stored in _stored(connection, on_target.row, spans):
        if stored.metric.name == name:
            by_block[stored.position // BLOCK].append(stored)
    if not by_block:
        return []
    values: dict[Position, dict[int, MeasuredNight]] = {}
    for committed_at, sha, run, number, blob in _nights(connection, on_target, by_block, limit):
        block = read_block(blob)
        for ordinal_then, metric, place, base in by_block[number]:
            value = block.number_of(place % BLOCK, base)
            if value is not None and any(since <= (committed_at, sha) < until for since, until in spans[ordinal_then]):
                night = MeasuredNight(sha, committed_at, value, metric.unit, metric.better)
                values.setdefault((committed_at, sha), {})[run] = night
    return _last_values(connection, on_target, values)


def _nights(
    connection: sa.Connection, suite: SuiteOnTarget, blocks: Collection[int], limit: int
) -> Iterable[tuple[float, str, int, int, bytes]]:
    """Return the blocks at nightly commits: each with the position of the commit, its run and its own number."""
    parameters = {"series": suite.series, "target": suite.target_id, "blocks": sorted(blocks), "others": limit - 1}
    return map(tuple, connection.execute(_NIGHTS, parameters))


def _last_values(
    connection: sa.Connection, suite: SuiteOnTarget, values: dict[Position, dict[int, MeasuredNight]]
) -> list[MeasuredNight]:
    """Return one value for each commit, in order; `values` has those of its runs, by their numbers."""
    several = {position for position, of_runs in values.items() if len(of_runs) > 1}
    ordered = stored_runs(connection, [suite.place_at(sha) for _, sha in several]) if several else {}
    nights = []
    for position, of_runs in sorted(values.items()):
        number, *others = of_runs
        if others:
            number = [run.number for run in ordered[suite.place_at(position[1])] if run.number in of_runs][-1]
        nights.append(of_runs[number])
    return nights


def measurements_of_run(connection: sa.Connection, key: RunKey) -> dict[str, tuple[Measurement, ...]]:
    """Return what the tests of a run measured, without samples; tests that measured nothing are left out."""
    stored_run = runs.find(connection, key)
    if stored_run is None or stored_run[1].claims is None:
        return {}
    suite = stored_run[1].claims.suite
    found = suites_on_targets(connection, key.repository, key.lab, key.target, suite)
    if not found:
        return {}
    on_target = found[0]
    count = count_of(connection, on_target.row)
    blocks = {
        number: read_block(blob)
        for number, blob in blocks_of_runs(connection, on_target.series, [stored_run[0]], count)
        .get(stored_run[0], {})
        .items()
    }
    if not blocks:
        return {}
    name_of = all_names(connection, on_target.row)
    measured = defaultdict[str, list[Measurement]](list)
    for (ordinal, metric), (position, base) in placed_measurements(connection, on_target.row).items():
        block = blocks.get(position // BLOCK)
        value = None if block is None else block.number_of(position % BLOCK, base)
        if value is not None:
            measured[name_of[ordinal]].append(Measurement(metric.name, value, metric.unit, metric.better))
    return {test: tuple(sorted(measurements)) for test, measurements in sorted(measured.items())}


def metrics_of_target(connection: sa.Connection, target: TargetKey) -> dict[str, dict[Metric, int]]:
    """Return what the tests of each suite measured at its newest nightly commit on a target, and how many tests did."""
    suites = suites_on_targets(connection, target.repository, target.lab, target.target)
    newest = newest_points(connection, [suite.series for suite in suites], 1)
    places = {suite: suite.place_at(newest[suite.series][-1].sha) for suite in suites if newest.get(suite.series)}
    runs_at = stored_runs(connection, places.values())
    metrics = {}
    for suite, place in places.items():
        count = count_of(connection, suite.row)
        if not count:
            continue
        positions = {
            number * BLOCK + slot
            for blobs in blocks_of_runs(
                connection, suite.series, [run.number for run in runs_at.get(place, ())], count
            ).values()
            for number, blob in blobs.items()
            for slot in read_block(blob).slots
        }
        counts = Counter(
            metric
            for (_, metric), (position, _) in placed_measurements(connection, suite.row).items()
            if position in positions
        )
        if counts:
            metrics[suite.name] = dict(sorted(counts.items()))
    return metrics


def _stored(connection: sa.Connection, suite: SuiteRow, ordinals: Collection[int]) -> list[_Stored]:
    """Return the measurements that tests of a suite ever had."""
    metrics = metrics_of(connection, suite)
    return [
        _Stored(ordinal, metrics[metric], position, Decimal(digits, exponent))
        for ordinal, metric, position, digits, exponent in connection.execute(
            _OF_TESTS, {"suite": suite.id, "ordinals": sorted(ordinals)}
        )
    ]
