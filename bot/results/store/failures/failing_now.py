"""Find what fails now on each target of a repository, and since when, with a few statements for all targets.

`failures.failing_tests` returns more about one target.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from nightjar_formats.columns import CODES
from nightjar_formats.model import Status, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.context import failure_context
from bot.results.compare.flaky import WINDOW
from bot.results.compare.quarantine import QuarantineOf
from bot.results.store.failures.contexts import MOST_RUNS
from bot.results.store.history.explained import PointColumn, explained_ordinals, quarantined_failures
from bot.results.store.history.series_names import END, changes_since, series_names
from bot.results.store.history.windows import segments_over
from bot.results.store.tables import schema
from bot.results.store.tables.cells import FAILS, IS_FAILURE, IS_FLAKY_FAILURE, marked_places
from bot.results.store.tables.names import all_names
from bot.results.store.tables.points import LinkedPoint, Position, SuiteOnTarget, newest_points, suites_on_targets
from bot.results.store.tables.rename_pairs import PointRenames, renames_of
from bot.results.store.tables.runs import columns_at

START: Position = (float("-inf"), "")
"""Before every commit."""
FAILED = CODES[Status.FAILED]
MOST_RATES = 14
"""The most commits of a target whose pass rates are returned: as many as a grid has columns."""
MOST_FRESH = 1000
"""The most tests that began to fail in the newest runs and are listed before others: only the order depends on it."""
NameSpan = tuple[int, Position, Position]
"""The ordinal of a name of a test, and the commits from and until which the test had it."""


@dataclass(frozen=True, slots=True)
class FailingSince:
    """A test that fails in the newest nightly run of its suite, and the commit at which that began.

    `since_at` is when that commit was made, in seconds since 1970.
    """

    suite: str
    test: str
    since: str
    since_at: float


@dataclass(frozen=True, slots=True)
class PassRate:
    """How many tests of a target passed and failed at a commit, in all suites with complete results of it."""

    sha: str
    committed_at: float
    passed: int
    failed: int


@dataclass(frozen=True, slots=True)
class TargetNow:
    """The newest complete commit of a target, the number of its suites, and how many tests fail in their newest runs.

    `failures` are some of these tests, by suite, then those that began to fail in the newest run, then by name. `known`
    is the number of further failures, which a quarantine or the flakiness of the tests explains, flaky ones included.
    `rates` are those of its last `MOST_RATES` commits whose counts are stored, oldest first.
    """

    sha: str
    suites: int
    failing: int
    known: int
    failures: Sequence[FailingSince]
    rates: Sequence[PassRate] = ()


def targets_now(
    connection: sa.Connection,
    repository: str,
    limit: int,
    aliases: Aliases = NO_ALIASES,
    quarantine: QuarantineOf | None = None,
    targets: Collection[TargetKey] | None = None,
) -> dict[TargetKey, TargetNow]:
    """Return what fails on targets of a repository with complete results; at most `limit` tests of each are listed.

    `targets` are all if it is None.
    """
    only = next(iter(targets), None) if targets is not None and len(targets) == 1 else None
    of_target = (only.lab, only.target) if only else ()
    suites = {
        suite.series: suite
        for suite in suites_on_targets(connection, repository, *of_target)
        if targets is None or suite.target in targets
    }
    # The commit before says whether there is anything to compare with: without it, flakiness explains no failure.
    last_points = newest_points(connection, suites, MOST_RATES)
    newest = {series: points[-1] for series, points in last_points.items()}
    # Where nothing failed, no test needs to be read. A flaky test is among the failed ones, but it does not fail.
    places = {series: suites[series].place_at(point.sha) for series, point in newest.items() if point.failed != 0}
    columns = columns_at(connection, places.values())
    failed = {series: columns[place] for series, place in places.items() if place in columns}
    points_with_failures = {
        series: PointColumn((newest[series].committed_at, newest[series].sha), column, column)
        for series, column in failed.items()
        if 1 in column.translate(IS_FAILURE)
    }
    compared = {series for series, points in last_points.items() if len(points) > 1}
    known = _explained(connection, suites, points_with_failures, compared, aliases, quarantine)
    failing = {
        series: [
            ordinal
            for ordinal in marked_places(failed.get(series, b"").translate(IS_FAILURE))
            if ordinal not in known.get(series, ())
        ]
        for series in newest
    }
    fresh = _fresh(connection, [newest[series].id for series, ordinals in failing.items() if ordinals]) if limit else {}
    by_target = dict[TargetKey, list[SuiteOnTarget]]()
    for series, suite in suites.items():
        if series in newest:
            by_target.setdefault(suite.target, []).append(suite)
    listed = dict[int, list[tuple[str, int]]]()
    for target_suites in by_target.values():
        room = limit
        for suite in sorted(target_suites, key=lambda suite: suite.name):
            name_of = all_names(connection, suite.row) if room and failing[suite.series] else []
            new = fresh.get(suite.series, set())
            ordered = sorted(
                (ordinal not in new, name_of[ordinal], ordinal)
                for ordinal in (failing[suite.series] if name_of else ())
            )
            tests = [(name, ordinal) for _, name, ordinal in ordered[:room]]
            listed[suite.series] = tests
            room -= len(tests)
    since = _since(connection, suites, newest, listed, aliases)
    target_now = {}
    for target, target_suites in by_target.items():
        latest = max(
            (newest[suite.series].committed_at, newest[suite.series].sha, suite.name) for suite in target_suites
        )
        failures = [
            FailingSince(suite.name, name, *since[suite.series, ordinal])
            for suite in sorted(target_suites, key=lambda suite: suite.name)
            for name, ordinal in listed[suite.series]
        ]
        target_now[target] = TargetNow(
            latest[1],
            len(target_suites),
            sum(len(failing[suite.series]) for suite in target_suites),
            sum(
                len(known.get(suite.series, ())) + failed.get(suite.series, b"").translate(IS_FLAKY_FAILURE).count(1)
                for suite in target_suites
            ),
            failures,
            _rates(last_points[suite.series] for suite in target_suites),
        )
    return target_now


def _explained(
    connection: sa.Connection,
    suites: Mapping[int, SuiteOnTarget],
    columns: Mapping[int, PointColumn],
    compared: Collection[int],
    aliases: Aliases,
    quarantine: QuarantineOf | None,
) -> dict[int, set[int]]:
    """Return which failures in the newest column of each series a quarantine or the flakiness of the tests explains.

    Flakiness explains those of the `compared` series only, which have a commit before.
    """
    rows = {series: suites[series].row for series in columns}
    compared_columns = {series: [point] for series, point in columns.items() if series in compared}
    explained = explained_ordinals(connection, rows, compared_columns, aliases)
    known = {series: set(explained.get((series, point.position[1]), ())) for series, point in columns.items()}
    if quarantine is not None:
        for series, point in columns.items():
            of_target = quarantine(suites[series].target)
            known[series].update(quarantined_failures(connection, rows[series], of_target, point.column))
    return known


def _rates(points_of_suites: Iterable[Sequence[LinkedPoint]]) -> list[PassRate]:
    """Return how many tests passed and failed at each of the newest commits of a target, in all its suites."""
    rates: dict[str, PassRate] = {}
    for points in points_of_suites:
        for point in points:
            if point.passed is not None and point.failed is not None:
                rate = rates.get(point.sha, PassRate(point.sha, point.committed_at, 0, 0))
                rates[point.sha] = replace(rate, passed=rate.passed + point.passed, failed=rate.failed + point.failed)
    return sorted(rates.values(), key=lambda rate: (rate.committed_at, rate.sha))[-MOST_RATES:]


def stored_failures(connection: sa.Connection, repository: str) -> dict[TargetKey, int]:
    """Return how many tests failed in the newest run of each suite of each target, explained failures included.

    A suite whose count is not stored counts as one without failures.
    """
    suites = {suite.series: suite.target for suite in suites_on_targets(connection, repository)}
    failed: dict[TargetKey, int] = {}
    for series, points in newest_points(connection, suites, 1).items():
        failed[suites[series]] = failed.get(suites[series], 0) + (points[-1].failed or 0)
    return failed


def _fresh(connection: sa.Connection, points: Sequence[int]) -> dict[int, set[int]]:
    """Return the tests that began to fail at points, by series: at most `MOST_FRESH` of all."""
    table, fresh = schema.changes, dict[int, set[int]]()
    for chunk in schema.in_chunks(points):
        # The index `nightjar_changes_point` has all these columns.
        statement = (
            sa.select(table.c.series_id, table.c.ordinal)
            .where(table.c.point_id.in_(chunk), table.c.before.not_in(FAILS), table.c.after.in_(FAILS))
            .limit(MOST_FRESH)
        )
        for series, ordinal in connection.execute(statement):
            fresh.setdefault(series, set()).add(ordinal)
    return fresh


def _since(
    connection: sa.Connection,
    suites: Mapping[int, SuiteOnTarget],
    newest: Mapping[int, LinkedPoint],
    listed: Mapping[int, Sequence[tuple[str, int]]],
    aliases: Aliases,
) -> dict[tuple[int, int], tuple[str, float]]:
    """Return the commit at which the failure of each test began, and its time, by the test's series and ordinal."""
    ordinals = {series: [ordinal for _, ordinal in tests] for series, tests in listed.items() if tests}
    if not ordinals:
        return {}
    spans = _spans(connection, suites, ordinals, aliases)
    beginnings = _beginnings(connection, spans, newest, WINDOW)
    # Most failures began a few runs ago, so older runs are read only for the tests that failed in all of these.
    older: dict[int, dict[int, list[NameSpan]]] = {}
    for (series, ordinal), (_, _, has_passed) in beginnings.items():
        if not has_passed:
            older.setdefault(series, {})[ordinal] = spans[series][ordinal]
    beginnings |= _beginnings(connection, older, newest, MOST_RUNS)
    return {test: (since, since_at) for test, (since, since_at, _) in beginnings.items()}


def _beginnings(
    connection: sa.Connection,
    spans: Mapping[int, Mapping[int, list[NameSpan]]],
    newest: Mapping[int, LinkedPoint],
    runs: int,
) -> dict[tuple[int, int], tuple[str, float, bool]]:
    """Return what `_since` returns, from the newest `runs` of each series, and whether the test passed in one of them.

    `spans` are the names of the tests, by series and ordinal.
    """
    if not spans:
        return {}
    oldest = _oldest(connection, spans, runs)
    names = {
        series: {name for spans_of_test in spans_of_series.values() for name, _, _ in spans_of_test}
        for series, spans_of_series in spans.items()
    }
    changes = changes_since(connection, names, min(committed_at for committed_at, _ in oldest.values()))
    beginnings = {}
    for series, spans_of_series in spans.items():
        newest_position = (newest[series].committed_at, newest[series].sha)
        for ordinal, spans_of_test in spans_of_series.items():
            # Between two of its changes a test always ended in the same way, so other commits are not needed.
            positions = {change[0] for name, _, _ in spans_of_test for change in changes[series].get(name, ())}
            chain = sorted(
                position for position in {*positions, oldest[series]} if oldest[series] <= position < newest_position
            )
            # If nothing has changed, it ended at all commits as it does now.
            history = segments_over(spans_of_test, changes[series], chain, FAILED) if chain else []
            context = failure_context(history, [sha for _, sha in chain])
            since = context.since or newest_position[1]
            committed_at = {sha: time for time, sha in (*chain, newest_position)}
            beginnings[series, ordinal] = since, committed_at[since], bool(context.good)
    return beginnings


def _spans(
    connection: sa.Connection,
    suites: Mapping[int, SuiteOnTarget],
    ordinals: Mapping[int, Sequence[int]],
    aliases: Aliases,
) -> dict[int, dict[int, list[NameSpan]]]:
    """Return the names of each test, and when it had them, by its series and ordinal."""
    renames = defaultdict[int, list[PointRenames]](list)
    for point in renames_of(connection, sorted(ordinals)):
        renames[point.series_id].append(point)
    spans: dict[int, dict[int, list[NameSpan]]] = {}
    for series, ordinals_of_series in ordinals.items():
        spans[series] = {ordinal: [(ordinal, START, END)] for ordinal in ordinals_of_series}
        if aliases or renames[series]:
            name_of = all_names(connection, suites[series].row)
            names = series_names(connection, series, name_of, aliases, ordinals_of_series, renames[series])
            spans[series] = {ordinal: list(names.spans(ordinal)) for ordinal in ordinals_of_series}
    return spans


def _oldest(connection: sa.Connection, series: Collection[int], runs: int) -> dict[int, Position]:
    """Return the oldest commit of each series within its last `runs` runs."""
    table, points = schema.series, schema.points
    linked_points = points.alias()
    linked = (
        sa.select(linked_points.c.id)
        .where(linked_points.c.series_id == table.c.id, linked_points.c.linked)
        .limit(1)
        .correlate(table)
    )
    last = linked.order_by(linked_points.c.committed_at.desc(), linked_points.c.sha.desc()).offset(runs)
    # For a series with fewer runs.
    first = linked.order_by(linked_points.c.committed_at, linked_points.c.sha)
    statement = (
        sa.select(table.c.id, points.c.committed_at, points.c.sha)
        .select_from(
            table.join(points, points.c.id == sa.func.coalesce(last.scalar_subquery(), first.scalar_subquery()))
        )
        .where(table.c.id.in_(sorted(series)))
    )
    return {row.id: (row.committed_at, row.sha) for row in connection.execute(statement)}
