"""The tests of a repository that the newest runs skipped, since when; and those that ran nowhere for a while."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import compress

import sqlalchemy as sa
from nightjar_formats.columns import CODES, STATUS_BITS, STATUS_BYTES, at
from nightjar_formats.model import Status, TargetKey

from bot.results.compare.flaky import WINDOW
from bot.results.compare.lasting import Segment
from bot.results.store.history.windows import TestsInWindow, outcomes, window_histories
from bot.results.store.lists.listed_tests import ListedTests
from bot.results.store.tables import runs, schema
from bot.results.store.tables.names import SuiteNames, SuiteRow
from bot.results.store.tables.points import (
    LinkedPoint,
    Place,
    SuiteOnTarget,
    newest_points,
    numbers_of,
    status_columns,
    stored_runs,
    suites_on_targets,
)

_SKIPPED_CODE = CODES[Status.SKIPPED]
_SKIPPED = bytes(byte < STATUS_BYTES and byte & STATUS_BITS == _SKIPPED_CODE for byte in range(256))
_THERE = bytes(0 < byte < STATUS_BYTES for byte in range(256))
_RAN = bytes(there and not skipped for there, skipped in zip(_THERE, _SKIPPED, strict=True))
_RAN_BYTES = [byte for byte in range(STATUS_BYTES) if _RAN[byte]]


@dataclass(frozen=True, slots=True)
class SkippedOn:
    """A target on which a test is skipped, since the commit `since`; `at_least`: it was there before our window.

    `why` is the lab's reason. Moments are in seconds since 1970.
    """

    about: TargetKey
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


@dataclass(frozen=True, slots=True)
class _Newest:
    """The newest run of a suite on a target."""

    one: SuiteOnTarget
    point: LinkedPoint
    place: Place
    column: bytes


def skipped_tests(connection: sa.Connection, known: SuiteNames, asked: ListedTests, since: float) -> SkippedList:
    """Return the tests that are skipped in the newest runs, and those that ran on no target since a moment."""
    newest, stored = _newest(connection, suites_on_targets(connection, asked.repository, *(asked.target or ())))
    by_suite = defaultdict[SuiteRow, list[_Newest]](list)
    suite_of = {}
    for run in newest:
        by_suite[run.one.row].append(run)
        suite_of[run.one.row] = run.one.suite
    skipped: list[tuple[str, str, SuiteRow, int]] = []
    idle: list[tuple[str, str, SuiteRow, int]] = []
    for row in sorted(by_suite, key=suite_of.__getitem__):
        name_of, those = known.all(connection, row), by_suite[row]
        for places, into in (
            (_places(_any(run.column.translate(_SKIPPED) for run in those)), skipped),
            (_idle(connection, those, since), idle),
        ):
            named = ((suite_of[row], name_of[place], row, place) for place in places)
            into += sorted(one for one in named if not asked.text or asked.text in one[1].lower())
    shown = skipped[asked.start : asked.start + asked.limit]
    return SkippedList(
        _described(connection, known, asked, shown, by_suite, stored),
        len(skipped),
        [_idle_test(one, by_suite[one[2]], since) for one in idle[: asked.limit]],
        len(idle),
        len(newest),
    )


def _newest(
    connection: sa.Connection, every: Sequence[SuiteOnTarget]
) -> tuple[list[_Newest], Mapping[Place, list[runs.BareRun]]]:
    points = newest_points(connection, {one.series for one in every}, 1)
    places = {
        one.series: (one.target_id, points[one.series][0].sha, one.suite) for one in every if one.series in points
    }
    stored = stored_runs(connection, places.values())
    columns = status_columns(connection, numbers_of(stored))
    found = [
        _Newest(one, points[one.series][0], places[one.series], columns[places[one.series]])
        for one in every
        if one.series in places and places[one.series] in columns
    ]
    return found, stored


def _any(columns: Iterable[bytes]) -> bytes:
    """Return 1 for each test for which one of the columns has 1."""
    # Each column is one large number, so that no loop runs over the tests.
    every = list(columns)
    found = 0
    for column in every:
        found |= int.from_bytes(column, "little")
    return found.to_bytes(max(map(len, every), default=0), "little")


def _places(column: bytes) -> list[int]:
    return list(compress(range(len(column)), column))


def _idle(connection: sa.Connection, those: Sequence[_Newest], since: float) -> list[int]:
    """Return the tests that are in a newest run, and ran in none since a moment."""
    there = _any(run.column.translate(_THERE) for run in those)
    ran = _any(run.column.translate(_RAN) for run in those if run.point.committed_at >= since)
    candidates = {place for place in _places(there) if not at(ran, place)}
    if not candidates:
        return []
    changes, points = schema.changes, schema.points
    series = [run.one.series for run in those]
    # A test that ran in that time and is skipped now has a change in that time.
    statement = (
        sa.select(points.c.series_id, points.c.committed_at, changes.c.ordinal, changes.c.after)
        .select_from(points.join(changes, changes.c.point_id == points.c.id))
        .where(points.c.series_id.in_(series), points.c.linked, points.c.committed_at >= since)
        .where(sa.or_(changes.c.after.in_(_RAN_BYTES), changes.c.before.in_(_RAN_BYTES)))
    )
    first = _first_since(connection, series, since)
    for row in connection.execute(statement):
        # A change away from running at the first run of that time only shows that the test ran before that time.
        if row.after in _RAN_BYTES or row.committed_at > first.get(row.series_id, since):
            candidates.discard(row.ordinal)
    return sorted(candidates)


def _first_since(connection: sa.Connection, series: Sequence[int], since: float) -> dict[int, float]:
    points = schema.points
    statement = (
        sa.select(points.c.series_id, sa.func.min(points.c.committed_at).label("first"))
        .where(points.c.series_id.in_(series), points.c.linked, points.c.committed_at >= since)
        .group_by(points.c.series_id)
    )
    return {row.series_id: row.first for row in connection.execute(statement)}


def _idle_test(named: tuple[str, str, SuiteRow, int], those: Sequence[_Newest], since: float) -> IdleTest:
    suite, test, _, place = named
    skipped = tuple(run.one.about for run in those if at(run.column.translate(_SKIPPED), place))
    silent = tuple(
        run.one.about for run in those if at(run.column.translate(_RAN), place) and run.point.committed_at < since
    )
    return IdleTest(suite, test, skipped, silent)


def _described(
    connection: sa.Connection,
    known: SuiteNames,
    asked: ListedTests,
    shown: Sequence[tuple[str, str, SuiteRow, int]],
    by_suite: Mapping[SuiteRow, list[_Newest]],
    stored: Mapping[Place, list[runs.BareRun]],
) -> list[SkippedTest]:
    wanted = defaultdict[SuiteRow, list[int]](list)
    for _, _, row, place in shown:
        wanted[row].append(place)
    concerned = {run.one.series: run for row in wanted for run in by_suite[row]}
    windows = newest_points(connection, concerned, WINDOW)
    here = {
        run.one.series: [place for place in places if _SKIPPED[at(run.column, place)]]
        for row, places in wanted.items()
        for run in by_suite[row]
    }
    tests = [TestsInWindow(run.one, windows[series], run.column, here[series]) for series, run in concerned.items()]
    pasts = window_histories(connection, known, tests, asked.aliases)
    runs_of = {series: [one.number for one in stored[run.place]] for series, run in concerned.items()}
    reasons = _reasons(connection, runs_of, here)
    skipped_on = defaultdict[tuple[SuiteRow, int], list[SkippedOn]](list)
    runs_on = defaultdict[tuple[SuiteRow, int], list[TargetKey]](list)
    for row, places in wanted.items():
        for run in by_suite[row]:
            series = run.one.series
            for place, since in _since(run, windows[series], here[series], pasts.get(series, {})):
                skipped_on[row, place].append(replace(since, why=reasons[series].get(place, "")))
            for place in places:
                if _RAN[at(run.column, place)]:
                    runs_on[row, place].append(run.one.about)
    return [
        SkippedTest(suite, test, tuple(skipped_on[row, place]), tuple(runs_on[row, place]))
        for suite, test, row, place in shown
    ]


def _since(
    run: _Newest, window: Sequence[LinkedPoint], places: Sequence[int], pasts: Mapping[int, Sequence[Segment]]
) -> Iterator[tuple[int, SkippedOn]]:
    for place in places:
        ended = outcomes(pasts[place], len(window))
        begin = len(ended)
        while begin and (seen := ended[begin - 1]) is not None and seen.status is Status.SKIPPED:
            begin -= 1
        point = window[min(begin, len(window) - 1)]
        # A shorter window is the whole series, so nothing came before it.
        at_least = begin == 0 and len(window) == WINDOW
        yield place, SkippedOn(run.one.about, point.sha, point.committed_at, at_least)


def _reasons(
    connection: sa.Connection, runs_of: Mapping[int, Sequence[int]], places: Mapping[int, Sequence[int]]
) -> dict[int, dict[int, str]]:
    """Return why tests were skipped, by series and place; a later one of the runs of a series says it."""
    series_of = {number: series for series, numbers in runs_of.items() if places[series] for number in numbers}
    by_run = dict[int, dict[int, str]]()
    for number, reasons in runs.reasons(connection, list(series_of)):
        wanted = set(places[series_of[number]])
        by_run[number] = {
            ordinal: reasons.whys[why].message
            for ordinal, why in zip(reasons.ordinals, reasons.numbers, strict=True)
            if ordinal in wanted
        }
    found: dict[int, dict[int, str]] = {series: {} for series in runs_of}
    for number, series in series_of.items():
        found[series] |= by_run.get(number, {})
    return found
