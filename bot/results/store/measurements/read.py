"""Read what tests measured: one measurement over the nightly commits, all of a run, and which ones a target has.

No statement scans a table: a series of a thousand nights is read from a thousand blocks, by two statements.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from nightjar_formats.measurements import Better, Measurement
from nightjar_formats.model import RunKey, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.store.history.series_names import series_names
from bot.results.store.measurements.number_blocks import BLOCK, Decimal, number_in, numbers_in, read_block, slots_in
from bot.results.store.measurements.write import SuiteMetric, blocks_of_runs, count_of, metrics_of, placed_measurements
from bot.results.store.tables import names, runs, schema
from bot.results.store.tables.names import SuiteRow, all_names, find_ordinal
from bot.results.store.tables.points import Position, SuiteOnTarget, newest_points, suites_on_targets
from bot.results.store.tables.rename_pairs import PointRenames, renames_of
from bot.results.store.tables.runs import stored_runs

NIGHTS = 1_000
"""The newest nightly commits of which a series is read."""


class MeasuredNight(NamedTuple):
    """What a test measured at a nightly commit. `committed_at` is in seconds since 1970.

    `unit` and `better` are those of that night: they may have changed since.
    """

    sha: str
    committed_at: float
    value: float
    unit: str
    better: Better


SeriesId = tuple[int, str]
"""A series on a target: the ordinal of the test's present name in its suite, and the name of the measurement."""


class _Piece(NamedTuple):
    """Where a series has its values in a block, at the commits from `since` to before `until`."""

    series: SeriesId
    since: Position
    until: Position
    slot: int
    base: Decimal
    metric: SuiteMetric


_Spans = dict[int, list[tuple[int, Position, Position]]]
"""By a test's ordinal at some time: the ordinals of the tests that were called so then.

Each has the first commit and the first later commit.
"""


class _Stored(NamedTuple):
    """Where the numbers of a measurement are, and what its test was called: `ordinal`."""

    ordinal: int
    metric: SuiteMetric
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
    # Outer joins keep the order: otherwise SQLite would begin with all numbers, most of which are of pull requests.
    .outerjoin(_RUNS, sa.and_(_RUNS.c.target_id == sa.bindparam("target"), _RUNS.c.sha == _POINTS.c.sha))
    .outerjoin(
        _NUMBERS,
        sa.and_(
            _NUMBERS.c.series_id == _POINTS.c.series_id,
            _NUMBERS.c.block.in_(sa.bindparam("blocks", expanding=True)),
            _NUMBERS.c.run_id == _RUNS.c.id,
        ),
    )
    .where(_POINTS.c.series_id == sa.bindparam("series"), _POINTS.c.linked)
    .where(_POINTS.c.committed_at >= sa.func.coalesce(_OLDEST, 0.0))
)


def metrics_of_test(connection: sa.Connection, repository: str, suite: str, test_id: str) -> list[SuiteMetric]:
    """Return what a test ever measured under its present name, on any target, sorted."""
    row = names.find(connection, repository, suite)
    ordinal = None if row is None else find_ordinal(connection, row, test_id)
    if row is None or ordinal is None:
        return []
    return sorted(stored.metric for stored in _stored(connection, row, [ordinal]))


def metrics_of_tests(connection: sa.Connection, tests: Mapping[SuiteRow, int | None]) -> dict[int, set[str]]:
    """Return the names of what a test of each suite ever measured, by the ID of the suite; `tests` are ordinals."""
    names_of: dict[int, set[str]] = {suite.id: set() for suite in tests}
    pairs = [(suite.id, ordinal) for suite, ordinal in tests.items() if ordinal is not None]
    for chunk in schema.in_chunks(pairs):
        suites, ordinals = zip(*chunk, strict=True)
        statement = (
            sa.select(_MEASUREMENTS.c.suite_id, _MEASUREMENTS.c.ordinal, schema.metrics.c.name)
            .join(schema.metrics, schema.metrics.c.id == _MEASUREMENTS.c.metric_id)
            # Both sides are named, because SQLite uses no index for pairs.
            .where(_MEASUREMENTS.c.suite_id.in_(set(suites)), _MEASUREMENTS.c.ordinal.in_(set(ordinals)))
        )
        for suite, ordinal, name in connection.execute(statement):
            if (suite, ordinal) in chunk:
                names_of[suite].add(name)
    return names_of


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
    return series_on_target(connection, found[0], [(ordinal, name)], aliases, limit).get((ordinal, name), [])


def series_on_target(
    connection: sa.Connection,
    on_target: SuiteOnTarget,
    series: Collection[SeriesId],
    aliases: Aliases = NO_ALIASES,
    limit: int = NIGHTS,
) -> dict[SeriesId, list[MeasuredNight]]:
    """Return what `measured_series` returns, of several series of one suite; those without a night are left out.

    It takes as many statements as one series.
    """
    return series_on_targets(connection, [on_target], series, aliases, limit)[on_target.series]


def series_on_targets(
    connection: sa.Connection,
    on_targets: Sequence[SuiteOnTarget],
    series: Collection[SeriesId],
    aliases: Aliases = NO_ALIASES,
    limit: int = NIGHTS,
) -> dict[int, dict[SeriesId, list[MeasuredNight]]]:
    """Return what `series_on_target` returns of one suite on some targets, by the number of the suite on the target.

    Each target but the first takes one more statement.
    """
    row, tests = on_targets[0].row, {ordinal for ordinal, _ in series}
    renames = defaultdict[int, list[PointRenames]](list)
    for point in renames_of(connection, [on_target.series for on_target in on_targets]):
        renames[point.series_id].append(point)
    all_tests, spans_on = all_names(connection, row), dict[int, _Spans]()
    for on_target in on_targets:
        names_then = series_names(connection, on_target.series, all_tests, aliases, tests, renames[on_target.series])
        spans = spans_on[on_target.series] = {}
        for ordinal in tests:
            for name_then, since, until in names_then.spans(ordinal):
                spans.setdefault(name_then, []).append((ordinal, since, until))
    stored = _stored(connection, row, {name for spans in spans_on.values() for name in spans})
    return {
        on_target.series: _series_of(connection, on_target, _pieces(stored, spans_on[on_target.series], series), limit)
        for on_target in on_targets
    }


def _pieces(stored: Sequence[_Stored], spans: _Spans, series: Collection[SeriesId]) -> Mapping[int, Sequence[_Piece]]:
    """Return the pieces of some series on a target, by block."""
    requested, by_block = set(series), defaultdict[int, list[_Piece]](list)
    for name_then, metric, position, base in stored:
        block, slot = divmod(position, BLOCK)
        by_block[block] += (
            _Piece((ordinal, metric.name), since, until, slot, base, metric)
            for ordinal, since, until in spans.get(name_then, ())
            if (ordinal, metric.name) in requested
        )
    return by_block


def _series_of(
    connection: sa.Connection, on_target: SuiteOnTarget, by_block: Mapping[int, Sequence[_Piece]], limit: int
) -> dict[SeriesId, list[MeasuredNight]]:
    """Return the values of series on a target."""
    blocks = [block for block, pieces in by_block.items() if pieces]
    nights_of = defaultdict[SeriesId, dict[Position, MeasuredNight]](dict)
    for commit, block, blob in _in_order(connection, on_target, blocks, limit) if blocks else ():
        committed_at, sha = commit
        pieces = [piece for piece in by_block[block] if piece.since <= commit < piece.until]
        numbers = numbers_in(read_block(blob), [(piece.slot, piece.base) for piece in pieces])
        for piece, value in zip(pieces, numbers, strict=True):
            if value is not None:
                night = MeasuredNight(sha, committed_at, value, piece.metric.unit, piece.metric.better)
                nights_of[piece.series][commit] = night  # in place of that of an earlier run of the commit
    return {series: list(nights.values()) for series, nights in nights_of.items()}


def _in_order(
    connection: sa.Connection, suite: SuiteOnTarget, blocks: Collection[int], limit: int
) -> list[tuple[Position, int, bytes]]:
    """Return the blocks at nightly commits, each with its commit and its number: by commit, then by run."""
    parameters = {"series": suite.series, "target": suite.target_id, "blocks": sorted(blocks), "others": limit - 1}
    rows = [
        ((committed_at, sha), run, block, blob)
        for committed_at, sha, run, block, blob in connection.execute(_NIGHTS, parameters)
        if blob is not None  # that of a run without these blocks
    ]
    runs_at = defaultdict[Position, set[int]](set)
    for commit, run, _, _ in rows:
        runs_at[commit].add(run)
    places = {suite.place_at(commit[1]) for commit, numbers in runs_at.items() if len(numbers) > 1}
    order = {
        run.number: index for stored in stored_runs(connection, places).values() for index, run in enumerate(stored)
    }
    rows.sort(key=lambda row: (row[0], order.get(row[1], 0)))
    return [(commit, block, blob) for commit, _, block, blob in rows]


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
        value = None if block is None else number_in(block, position % BLOCK, base)
        if value is not None:
            measured[name_of[ordinal]].append(Measurement(metric.name, value, metric.unit, metric.better))
    return {test: tuple(sorted(measurements)) for test, measurements in sorted(measured.items())}


def metrics_of_target(connection: sa.Connection, target: TargetKey) -> dict[str, dict[SuiteMetric, int]]:
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
            for slot in slots_in(read_block(blob))
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
