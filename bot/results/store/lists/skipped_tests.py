"""Find the tests that the newest runs skipped, and since when, and the tests that no target has run for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress, groupby, islice
from operator import itemgetter
from typing import NamedTuple

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, CODES, STATUS_BITS, STATUS_BYTES, at
from nightjar_formats.model import Status, TargetKey

from bot.results.compare.flaky import WINDOW
from bot.results.compare.lasting import Segment
from bot.results.store.history.windows import TestsInWindow, outcomes, window_histories
from bot.results.store.lists.listed_tests import ListedTests
from bot.results.store.tables import runs, schema
from bot.results.store.tables.cells import RAN
from bot.results.store.tables.combine import reason_of
from bot.results.store.tables.names import SuiteRow, names_of
from bot.results.store.tables.points import LinkedPoint, SuiteOnTarget, newest_points, suites_on_targets
from bot.results.store.tables.runs import Place, numbers_of, status_columns, stored_runs

_SKIPPED_CODE = CODES[Status.SKIPPED]
_SKIPPED = bytes(byte < STATUS_BYTES and byte & STATUS_BITS == _SKIPPED_CODE for byte in range(256))
_PRESENT = bytes(0 < byte < STATUS_BYTES for byte in range(256))
_RAN_BYTES = [byte for byte in range(STATUS_BYTES) if RAN[byte]]


@dataclass(frozen=True, slots=True)
class SkippedOn:
    """A target on which a test is skipped since the commit `since`; with `at_least`, that is the first one we read.

    `why` is the lab's reason. Moments are in seconds since 1970.
    """

    target: TargetKey
    since: str
    since_at: float
    at_least: bool
    why: str = ""


@dataclass(frozen=True, slots=True)
class SkippedTest:
    """A test that is skipped on some targets, and runs on others."""

    suite: str
    test: str
    skipped_on: tuple[SkippedOn, ...]
    runs_on: tuple[TargetKey, ...]


@dataclass(frozen=True, slots=True)
class IdleTest:
    """A test that ran nowhere for a while: it is skipped on some targets, and others sent nothing."""

    suite: str
    test: str
    skipped_on: tuple[TargetKey, ...]
    silent: tuple[TargetKey, ...]


@dataclass(frozen=True, slots=True)
class SkippedList:
    """Some skipped tests and some that ran nowhere, both by suite and name, and how many there are of each.

    `suites` counts the suites on targets that have a nightly run.
    """

    tests: list[SkippedTest]
    total: int
    idle: list[IdleTest]
    idle_total: int
    suites: int


class _NamedTest(NamedTuple):
    """A test of a suite, in the order of lists: by suite and name."""

    suite: str
    name: str
    row: SuiteRow
    ordinal: int


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest run of a suite on a target."""

    suite: SuiteOnTarget
    point: LinkedPoint
    place: Place
    column: bytes


def skipped_tests(connection: sa.Connection, query: ListedTests, since: float) -> SkippedList:
    """Return the tests that the newest runs skipped, and the tests that no target has run since a moment."""
    newest, stored = _newest(connection, suites_on_targets(connection, query.repository, *(query.target or ())))
    by_suite = defaultdict[SuiteRow, list[_Newest]](list)
    suite_of = {}
    for run in newest:
        by_suite[run.suite.row].append(run)
        suite_of[run.suite.row] = run.suite.name
    skipped, idle = list[tuple[SuiteRow, list[int]]](), list[tuple[SuiteRow, list[int]]]()
    for row in sorted(by_suite, key=suite_of.__getitem__):
        names, suite_runs = names_of(connection, row), by_suite[row]
        for column, tests in (
            (_union(run.column.translate(_SKIPPED) for run in suite_runs), skipped),
            (_idle(connection, suite_runs, since), idle),
        ):
            ordinals = names.marked_by_name(column)
            if query.text:
                ordinals = [ordinal for ordinal in ordinals if query.text in names.ordered[ordinal].lower()]
            tests.append((row, ordinals))

    def page(tests: Sequence[tuple[SuiteRow, list[int]]], start: int) -> list[_NamedTest]:
        """Name the tests of a page only: there may be 100,000."""
        all_tests = ((row, ordinal) for row, ordinals in tests for ordinal in ordinals)
        named = list[_NamedTest]()
        for row, of_suite in groupby(islice(all_tests, start, start + query.limit), key=itemgetter(0)):
            # Once for each suite: the names of a large one are not cached.
            ordered = names_of(connection, row).ordered
            named += [_NamedTest(suite_of[row], ordered[ordinal], row, ordinal) for _, ordinal in of_suite]
        return named

    return SkippedList(
        _with_history(connection, query, page(skipped, query.start), by_suite, stored),
        sum(len(ordinals) for _, ordinals in skipped),
        [_idle_test(test, by_suite[test.row], since) for test in page(idle, 0)],
        sum(len(ordinals) for _, ordinals in idle),
        len(newest),
    )


def _newest(
    connection: sa.Connection, suites: Sequence[SuiteOnTarget]
) -> tuple[list[_Newest], Mapping[Place, list[runs.BareRun]]]:
    """Return the newest run of each suite on each target, and the stored runs that it consists of, by place."""
    points = newest_points(connection, {suite.series for suite in suites}, 1)
    places = {suite.series: suite.place_at(points[suite.series][0].sha) for suite in suites if suite.series in points}
    stored = stored_runs(connection, places.values())
    columns = status_columns(connection, numbers_of(stored))
    newest = [
        _Newest(suite, points[suite.series][0], places[suite.series], columns[places[suite.series]])
        for suite in suites
        if suite.series in places and places[suite.series] in columns
    ]
    return newest, stored


def _union(columns: Iterable[bytes]) -> bytes:
    """Return a column with 1 for each test for which one of the columns has 1."""
    # Each column is one large number, so that no loop runs over the tests.
    all_columns = list(columns)
    union = 0
    for column in all_columns:
        union |= int.from_bytes(column, "little")
    return union.to_bytes(max(map(len, all_columns), default=0), "little")


def _without(column: bytes, other: bytes) -> bytes:
    """Return a column of 0 and 1 without what another one marks."""
    marks = int.from_bytes(column, "little") & ~int.from_bytes(other, "little")
    return marks.to_bytes(len(column), "little")


def _marked(column: bytes) -> list[int]:
    return list(compress(range(len(column)), column))


def _idle(connection: sa.Connection, suite_runs: Sequence[_Newest], since: float) -> bytes:
    """Mark the tests that are in a newest run, were there before a moment, and did not run in any run since."""
    present = _union(run.column.translate(_PRESENT) for run in suite_runs)
    ran = _union(run.column.translate(RAN) for run in suite_runs if run.point.committed_at >= since)
    candidates = set(_marked(_without(present, ran)))
    if not candidates:
        return b""
    changes, points = schema.changes, schema.points
    series = [run.suite.series for run in suite_runs]
    # A test that ran in that time and is skipped now has a change in that time.
    statement = (
        sa.select(points.c.series_id, points.c.committed_at, changes.c.ordinal, changes.c.before, changes.c.after)
        .select_from(points.join(changes, changes.c.point_id == points.c.id))
        .where(points.c.series_id.in_(series), points.c.linked, points.c.committed_at >= since)
        .where(sa.or_(changes.c.after.in_(_RAN_BYTES), changes.c.before.in_([ABSENT, *_RAN_BYTES])))
    )
    first, added = _first_since(connection, series, since), set[tuple[int, int]]()
    for row in connection.execute(statement):
        # A change away from running at the first run of that time only shows that the test ran before that time.
        if row.after in _RAN_BYTES or (row.before != ABSENT and row.committed_at > first.get(row.series_id, since)):
            candidates.discard(row.ordinal)
        elif row.before == ABSENT:
            added.add((row.series_id, row.ordinal))
    # Nobody knows for how long a younger test has not run: it was not there to run.
    older_series = _older_series(connection, series, since)
    older = [run for run in suite_runs if run.suite.series in older_series]
    idle = bytearray(len(present))
    for ordinal in candidates:
        idle[ordinal] = any(
            _PRESENT[at(run.column, ordinal)] and (run.suite.series, ordinal) not in added for run in older
        )
    return bytes(idle)


def _older_series(connection: sa.Connection, series: Sequence[int], since: float) -> set[int]:
    """Return those of the series that have a linked commit from before a moment."""
    table, points = schema.series, schema.points
    earlier = (
        sa.select(points.c.id)
        .where(points.c.series_id == table.c.id, points.c.linked, points.c.committed_at < since)
        .limit(1)
        .correlate(table)
    )
    return set(connection.scalars(sa.select(table.c.id).where(table.c.id.in_(series), earlier.exists())))


def _first_since(connection: sa.Connection, series: Sequence[int], since: float) -> dict[int, float]:
    """Return the time of the first linked commit of each series since a moment."""
    points = schema.points
    statement = (
        sa.select(points.c.series_id, sa.func.min(points.c.committed_at).label("first"))
        .where(points.c.series_id.in_(series), points.c.linked, points.c.committed_at >= since)
        .group_by(points.c.series_id)
    )
    return {row.series_id: row.first for row in connection.execute(statement)}


def _idle_test(test: _NamedTest, suite_runs: Sequence[_Newest], since: float) -> IdleTest:
    """Say where an idle test is skipped, and on which targets it ran in a newest run that is older than `since`."""
    skipped = tuple(run.suite.target for run in suite_runs if at(run.column.translate(_SKIPPED), test.ordinal))
    silent = tuple(
        run.suite.target
        for run in suite_runs
        if at(run.column.translate(RAN), test.ordinal) and run.point.committed_at < since
    )
    return IdleTest(test.suite, test.name, skipped, silent)


def _with_history(
    connection: sa.Connection,
    query: ListedTests,
    page: Sequence[_NamedTest],
    by_suite: Mapping[SuiteRow, list[_Newest]],
    stored: Mapping[Place, list[runs.BareRun]],
) -> list[SkippedTest]:
    """Say for the tests of a page where they run, and where they are skipped, since when and why."""
    ordinals_of = defaultdict[SuiteRow, list[int]](list)
    for test in page:
        ordinals_of[test.row].append(test.ordinal)
    shown_runs = {run.suite.series: run for row in ordinals_of for run in by_suite[row]}
    windows = newest_points(connection, shown_runs, WINDOW)
    skipped_ordinals = {
        run.suite.series: [ordinal for ordinal in ordinals if _SKIPPED[at(run.column, ordinal)]]
        for row, ordinals in ordinals_of.items()
        for run in by_suite[row]
    }
    tests = [
        TestsInWindow(run.suite, windows[series], run.column, skipped_ordinals[series])
        for series, run in shown_runs.items()
    ]
    histories = window_histories(connection, tests, query.aliases)
    runs_of = {series: [run.number for run in stored[run.place]] for series, run in shown_runs.items()}
    reasons = _reasons(connection, runs_of, skipped_ordinals)
    skipped_on = defaultdict[tuple[SuiteRow, int], list[SkippedOn]](list)
    runs_on = defaultdict[tuple[SuiteRow, int], list[TargetKey]](list)
    for row, ordinals in ordinals_of.items():
        for run in by_suite[row]:
            series = run.suite.series
            for ordinal, target in _since(run, windows[series], skipped_ordinals[series], histories.get(series, {})):
                skipped_on[row, ordinal].append(replace(target, why=reasons[series].get(ordinal, "")))
            for ordinal in ordinals:
                if RAN[at(run.column, ordinal)]:
                    runs_on[row, ordinal].append(run.suite.target)
    return [
        SkippedTest(
            test.suite, test.name, tuple(skipped_on[test.row, test.ordinal]), tuple(runs_on[test.row, test.ordinal])
        )
        for test in page
    ]


def _since(
    run: _Newest, window: Sequence[LinkedPoint], ordinals: Sequence[int], histories: Mapping[int, Sequence[Segment]]
) -> Iterator[tuple[int, SkippedOn]]:
    """Yield since when tests are skipped on the target of a run, by ordinal."""
    for ordinal in ordinals:
        results = outcomes(histories[ordinal], len(window))
        begin = len(results)
        while begin and (seen := results[begin - 1]) is not None and seen.status is Status.SKIPPED:
            begin -= 1
        point = window[min(begin, len(window) - 1)]
        # A shorter window is the whole series, so nothing came before it.
        at_least = begin == 0 and len(window) == WINDOW
        yield ordinal, SkippedOn(run.suite.target, point.sha, point.committed_at, at_least)


def _reasons(
    connection: sa.Connection, runs_of: Mapping[int, Sequence[int]], ordinals: Mapping[int, Sequence[int]]
) -> dict[int, dict[int, str]]:
    """Return why tests were skipped, by series and ordinal; if several runs of a series say it, the last one counts."""
    series_of = {number: series for series, numbers in runs_of.items() if ordinals[series] for number in numbers}
    by_run = dict[int, dict[int, str]]()
    for number, reasons in runs.reasons(connection, list(series_of)):
        by_run[number] = {
            ordinal: reason.message
            for ordinal in ordinals[series_of[number]]
            if (reason := reason_of(reasons, ordinal)) is not None
        }
    reasons_of: dict[int, dict[int, str]] = {series: {} for series in runs_of}
    for number, series in series_of.items():
        reasons_of[series] |= by_run.get(number, {})
    return reasons_of
