"""Read results by commit: for each suite of each target, the runs of the nightly branch with their tests.

A grid takes a few statements, which indices answer, and works on whole columns, however many tests there are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, at, differences, duration
from nightjar_formats.model import Detail, TargetKey

from bot.core.aliases import Aliases
from bot.results.compare.quarantine import NO_QUARANTINE
from bot.results.state import Run
from bot.results.store.grid.counted import read_counts
from bot.results.store.grid.rows import (
    GridLine,
    GridRange,
    lines_of,
    newest_commits,
    rows_at,
    rows_before,
    with_earlier,
)
from bot.results.store.grid.test_runs import (
    TestAt,
    TestRun,
    last_run_before,
    reasons_of,
    test_runs,
)
from bot.results.store.history.explained import FreshFailures, explained_places
from bot.results.store.history.history import TestHistory
from bot.results.store.tables import runs, schema
from bot.results.store.tables.blobs import raw
from bot.results.store.tables.cells import CellCounts, explained_column, new_failures, renamed_column
from bot.results.store.tables.combine import Details
from bot.results.store.tables.failure_texts import TextReader
from bot.results.store.tables.names import SuiteNames, SuiteRow
from bot.results.store.tables.points import Place, Position, reported_runs, status_columns
from bot.results.store.tables.rename_pairs import RenamePairs

Shown = tuple[int, str]
"""A series, and a commit."""


@dataclass(frozen=True, slots=True)
class GridPoint:
    """The outcome of a suite on a target at a commit.

    `before` and `now` are status columns: how its tests ended at the commit that it is compared with, under their
    present names, and at this one. `before` is None where there is none. A test whose failure is explained, by a
    quarantine or by its flakiness, has failed before. `infra` says why the run has no usable results.

    A point with `counts`, which only a grid of counts has, has no columns.
    """

    run: Run
    complete: bool
    infra: str
    before: bytes | None
    now: bytes
    stored: Sequence[int] = ()
    """The numbers of the runs with results, in their order."""
    counts: CellCounts | None = None


@dataclass(frozen=True, slots=True)
class Grid:
    """Lines, commits (newest first), and what there is at each, by series and SHA; `older`: there are more."""

    lines: Sequence[GridLine]
    commits: Sequence[Position]
    points: Mapping[tuple[int, str], GridPoint]
    older: bool = False


class Grids:
    """Reads grids; calls block, as those of `ResultsStore`."""

    def __init__(self, reading: Callable[[], AbstractContextManager[sa.Connection]], known: SuiteNames) -> None:
        self._reading = reading
        self._known = known

    def read(self, asked: GridRange) -> Grid:
        """Return the grid of a part of a repository's results."""
        with self._reading() as connection:
            lines = lines_of(connection, asked)
            commits = newest_commits(connection, lines, asked)
            # One more commit was read, only to know whether there are older ones.
            older, commits = len(commits) > asked.limit, commits[: asked.limit]
            if not commits:
                return Grid(lines, commits, {}, older)
            by_series = {line.series: line for line in lines if asked.places is None or line.series in asked.places}
            # These may include commits that are as old as the last one shown: others are compared with them.
            rows, previous = rows_at(connection, by_series, commits), rows_before(connection, by_series, commits[-1])
            points, shown = self._points(connection, by_series, rows, previous, asked), {sha for _, sha in commits}
            return Grid(lines, commits, {place: one for place, one in points.items() if place[1] in shown}, older)

    def runs_of_test(
        self,
        lines: Sequence[GridLine],
        test: str,
        traced: Mapping[TargetKey, TestHistory],
        asked: GridRange,
    ) -> dict[int, list[TestRun]]:
        """Return a test in the newest runs of lines of one suite, as many as are asked for, by series.

        `traced` is its history.
        """
        by_series = {line.series: line for line in lines}
        histories = {line.series: traced.get(line.about, ()) for line in lines}
        with self._reading() as connection:
            return test_runs(connection, self._known, by_series, test, histories, asked)

    def last_run_before(self, line: GridLine, position: Position) -> Position | None:
        """Return the newest run of a line before a position that belongs to the series, None for none."""
        with self._reading() as connection:
            return last_run_before(connection, line.series, position)

    def commits(self, asked: GridRange) -> list[Position]:
        """Return the newest commits of the nightly branch with results in any line, newest first."""
        with self._reading() as connection:
            return newest_commits(connection, lines_of(connection, asked), asked)[: asked.limit]

    def names(self, line: GridLine) -> list[str]:
        """Return all names that tests of a suite have had, by their places."""
        with self._reading() as connection:
            return self._known.all(connection, line.row)

    def lines_of_test(self, asked: GridRange, test: str) -> list[GridLine]:
        """Return the lines of a part of a repository's results whose suite has a test of this name."""
        with self._reading() as connection:
            lines = lines_of(connection, asked)
            suites = {line.row.id: line.row for line in lines}
            having = {
                number for number, row in suites.items() if self._known.ordinal(connection, row, test) is not None
            }
            return [line for line in lines if line.row.id in having]

    def durations(self, row: SuiteRow, called: Mapping[Shown, TestRun]) -> dict[Shown, float]:
        """Return how many seconds a test of a suite took in some runs."""
        with self._reading() as connection:
            place_of = self._known.places(connection, row)
            asked = {
                number: place
                for run in called.values()
                if (place := place_of.get(run.name)) is not None
                for number in run.stored
            }
            codes = _duration_codes(connection, asked)
        return {
            shown: duration(codes[timed[-1]]) or 0.0
            for shown, run in called.items()
            # The last of several runs that timed the test counts.
            if (timed := [number for number in run.stored if codes.get(number)])
        }

    def details(self, asked: Mapping[int, TestAt]) -> dict[int, Detail]:
        """Return what is stored of a test besides its status, by series; not where it just passed, or was absent."""
        with self._reading() as connection:
            reasons = reasons_of(connection, self._known, asked)
        fetch = TextReader(self._reading).text
        return {
            series: Details({asked[series].name: reason}, fetch)[asked[series].name]
            for series, reason in reasons.items()
        }

    def _points(
        self,
        connection: sa.Connection,
        by_series: Mapping[int, GridLine],
        rows: Sequence[sa.RowMapping],
        previous: dict[int, sa.RowMapping],
        asked: GridRange,
    ) -> dict[Shown, GridPoint]:
        counted = {row["id"]: counts for row in rows if (counts := _stored_counts(row, by_series, asked))}
        compared = with_earlier(rows, previous)
        if asked.newest_only:
            # Later points replace earlier ones of the same series.
            compared = list(
                {row["series_id"]: (row, earlier) for row, earlier in compared if not row["infra"]}.values()
            )
        read = [(row, earlier) for row, earlier in compared if not asked.counts or _is_read(row, counted)]
        columns_of = {_place(row, by_series) for pair in read for row in pair if row is not None}
        reported = _by_suite(
            reported_runs(
                connection, {_place(row, by_series)[:2] for row, _ in compared} | {place[:2] for place in columns_of}
            )
        )
        columns = status_columns(
            connection, {place: runs.stored(reported[place]) for place in columns_of if place in reported}
        )
        renames = _renames(connection, by_series, [row["id"] for row, _ in read if row["linked"]])
        found = dict[Shown, GridPoint]()
        fresh = dict[int, list[FreshFailures]]()
        for row, earlier in compared:
            line, place = by_series[row["series_id"]], _place(row, by_series)
            if place not in reported:
                continue
            now, before = columns.get(place, b""), None
            if earlier is not None and not row["infra"] and row["id"] not in counted:
                old = columns.get(_place(earlier, by_series), b"")
                before = self._before(connection, line, old, now, renames.get(row["id"], {}), asked)
                if new := _fresh(line, before, now, asked):
                    # A point that is not linked adds nothing to the series, whose newest column is the earlier one.
                    position = (row["committed_at"], row["sha"])
                    fresh.setdefault(line.series, []).append(
                        FreshFailures(position, new, now, now if row["linked"] else old)
                    )
            found[line.series, row["sha"]] = GridPoint(
                reported[place][-1][1],
                row["complete"],
                row["infra"],
                before,
                now,
                runs.stored(reported[place]),
                counted.get(row["id"]),
            )
        explained = self._explained(connection, by_series, fresh, asked)
        return {
            place: replace(point, before=explained_column(point.before, explained[place]))
            if point.before is not None and explained.get(place)
            else point
            for place, point in found.items()
        }

    def _before(
        self,
        connection: sa.Connection,
        line: GridLine,
        old: bytes,
        now: bytes,
        renames: Mapping[int, int],
        asked: GridRange,
    ) -> bytes:
        """Return the column that another is compared with, as the check run compares them."""
        if asked.aliases:
            renames = {**renames, **self._by_alias(connection, line, old, now, asked.aliases)}
        return renamed_column(old, renames)

    def _explained(
        self,
        connection: sa.Connection,
        lines: Mapping[int, GridLine],
        fresh: Mapping[int, Sequence[FreshFailures]],
        asked: GridRange,
    ) -> dict[Shown, list[int]]:
        """Return which new failures are explained, by a quarantine or by the flakiness of their tests."""
        suites = {series: line.row for series, line in lines.items()}
        found = explained_places(connection, self._known, suites, fresh, asked.aliases)
        for series, points in fresh.items():
            quarantine = asked.quarantine(lines[series].about) if asked.quarantine else NO_QUARANTINE
            if quarantine.exact or quarantine.prefixes:
                name_of = self._known.all(connection, suites[series])
                for one in points:
                    listed = [place for place in one.places if quarantine.of(name_of[place])]
                    found.setdefault((series, one.position[1]), []).extend(listed)
        return found

    def _by_alias(
        self, connection: sa.Connection, line: GridLine, old: bytes, now: bytes, aliases: Aliases
    ) -> dict[int, int]:
        changed = list(differences(old, now))
        name_of = self._known.all(connection, line.row)
        removed = {name_of[one]: one for one in changed if at(now, one) == ABSENT}
        added = {name_of[one]: one for one in changed if at(old, one) == ABSENT}
        return {added[new]: removed[name] for name, new in aliases.pairs(removed, added).items()}


def _fresh(line: GridLine, before: bytes, now: bytes, asked: GridRange) -> list[int]:
    if not asked.explain:
        return []
    if asked.places is not None:
        return [place for place in new_failures(before, now) if place in asked.places[line.series]]
    return new_failures(before, now)


def _stored_counts(row: sa.RowMapping, lines: Mapping[int, GridLine], asked: GridRange) -> CellCounts | None:
    """Return the counts of a point, unless what is configured may change them."""
    counts = read_counts(row) if asked.counts else None
    # An alias may pair a failing test with one that failed before under another name.
    if counts is None or (counts.failed and asked.aliases):
        return None
    quarantine = asked.quarantine(lines[row["series_id"]].about) if counts.new and asked.quarantine else NO_QUARANTINE
    return None if quarantine.exact or quarantine.prefixes else counts


def _is_read(row: sa.RowMapping, counted: Collection[int]) -> bool:
    return row["id"] not in counted and not row["infra"]


def _place(row: sa.RowMapping, lines: Mapping[int, GridLine]) -> Place:
    line = lines[row["series_id"]]
    return line.target_id, row["sha"], line.suite


def _by_suite(reported: Mapping[tuple[int, str], list[runs.Numbered]]) -> dict[Place, list[runs.Numbered]]:
    found: dict[Place, list[runs.Numbered]] = {}
    for (target, sha), numbered in reported.items():
        for number, run in numbered:
            if run.claims:
                found.setdefault((target, sha, run.claims.suite), []).append((number, run))
    return found


def _duration_codes(connection: sa.Connection, places: Mapping[int, int]) -> dict[int, int]:
    """Return how long a test took in each of some runs, as it is stored; `places` says where the test stands in them.

    Each column is dropped before the next one is read: a page asks about hundreds of them.
    """
    table, numbers = schema.columns, list(places)
    return {
        number: at(raw(blob), places[number])
        for some in schema.in_chunks(numbers)
        for number, blob in connection.execute(
            sa.select(table.c.run_id, table.c.durations).where(table.c.run_id.in_(some))
        )
    }


def _renames(connection: sa.Connection, series: Collection[int], points: Sequence[int]) -> dict[int, dict[int, int]]:
    table = schema.renames
    found: dict[int, dict[int, int]] = {}
    for some in schema.in_chunks(points):
        statement = sa.select(table.c.point_id, table.c.pairs).where(
            table.c.series_id.in_(series), table.c.point_id.in_(some)
        )
        found |= {row.point_id: dict(RenamePairs(row.pairs)) for row in connection.execute(statement)}
    return found
