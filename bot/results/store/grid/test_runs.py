"""Read one test at the newest commits of each target from its changes. Columns are read only of incomplete runs.

However many targets there are, it takes a few statements, which indices answer.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, BAD_CODES, CODES, SEEN, STATUS_BITS, at, is_flaky, status_byte
from nightjar_formats.columns.collect import Reason
from nightjar_formats.items import first_of
from nightjar_formats.model import Status

from bot.results.compare.flaky import WINDOW, flakiness_of
from bot.results.compare.lasting import Segment as LastingSegment
from bot.results.compare.quarantine import NO_QUARANTINE
from bot.results.store.grid.rows import GridLine, GridRange, newest_rows, with_earlier
from bot.results.store.history.explained import linked_windows
from bot.results.store.history.history import Segment, TestHistory
from bot.results.store.tables import runs, schema
from bot.results.store.tables.combine import reason_of
from bot.results.store.tables.names import SuiteNames
from bot.results.store.tables.points import Position, stored_runs


@dataclass(frozen=True, slots=True)
class TestRun:
    """A test at a commit of a suite on a target; `committed_at` is in seconds since 1970.

    `was` is its status byte at the commit that this one is compared with, None if there is none, and `now` that at
    this one. A test whose failure is explained, by a quarantine or by its flakiness, has failed before. `name` is what
    it was called. `linked`: the run is complete, of the nightly branch, and has usable results; otherwise, `infra` may
    say why not.

    `run_id` is the last of the suite's runs, and `stored` has the numbers of those with results, in their order.
    """

    sha: str
    committed_at: float
    linked: bool
    complete: bool
    infra: str
    run_id: str
    stored: Sequence[int]
    was: int | None
    now: int
    name: str

    @property
    def position(self) -> Position:
        """Where the commit stands in its series."""
        return self.committed_at, self.sha


def test_runs(
    connection: sa.Connection,
    known: SuiteNames,
    lines: Mapping[int, GridLine],
    test: str,
    traced: Mapping[int, TestHistory],
    asked: GridRange,
) -> dict[int, list[TestRun]]:
    """Return the newest runs of each line of one suite, as many as are asked for, by series, newest first.

    `traced` is the outcome of the test in each series, by which its outcome in a linked run is known.
    """
    rows, previous = newest_rows(connection, lines, asked.limit)
    suite = first_of(lines.values()).suite
    reported = runs.bare_runs(connection, {(lines[row["series_id"]].target_id, row["sha"], suite) for row in rows})
    unlinked = _read_unlinked(connection, lines, rows, suite, reported)
    found: dict[int, list[TestRun]] = {series: [] for series in lines}
    ended = {series: _Ended(traced.get(series, ()), test) for series in lines}
    for row, earlier in with_earlier(rows, previous):
        series, line = row["series_id"], lines[row["series_id"]]
        bare = reported.get((line.target_id, row["sha"], suite), [])
        if not bare:
            continue
        was = None
        now, name = ended[series].at((row["committed_at"], row["sha"]))
        # The history of a test has linked points only; at another point, its outcome is read from the columns.
        if row["id"] in unlinked:
            place = known.ordinal(connection, line.row, name)
            now = ABSENT if place is None else at(unlinked[row["id"]], place)
        if earlier is not None and not row["infra"]:
            was, _ = ended[series].at((earlier["committed_at"], earlier["sha"]))
        facts = (row["sha"], row["committed_at"], row["linked"], row["complete"], row["infra"])
        stored = [one.number for one in bare if one.is_stored]
        found[series].append(TestRun(*facts, bare[-1].run_id, stored, was, now, name))
    explained = _explained(connection, lines, found, ended, asked)
    # `with_earlier` goes from old to new.
    return {
        series: [
            replace(one, was=CODES[Status.FAILED]) if (series, one.sha) in explained else one for one in reversed(of)
        ]
        for series, of in found.items()
    }


def last_run_before(connection: sa.Connection, series: int, position: Position) -> Position | None:
    """Return the last linked point of a series before a position, None if there is none."""
    points = schema.points
    here = sa.tuple_(sa.literal(position[0], sa.Double), sa.literal(position[1], sa.Text))
    statement = (
        sa.select(points.c.committed_at, points.c.sha)
        .where(points.c.series_id == series, points.c.linked)
        .where(sa.tuple_(points.c.committed_at, points.c.sha) < here)
        .order_by(points.c.committed_at.desc(), points.c.sha.desc())
        .limit(1)
    )
    row = connection.execute(statement).first()
    return None if row is None else (row.committed_at, row.sha)


@dataclass(frozen=True, slots=True)
class TestAt:
    """A test at a commit of a line, under the name that it had there."""

    line: GridLine
    sha: str
    name: str


def reasons_of(connection: sa.Connection, known: SuiteNames, asked: Mapping[int, TestAt]) -> dict[int, Reason]:
    """Return why tests did not simply pass, by series, each from the last run that has the test."""
    ordinals = {series: known.ordinal(connection, one.line.row, one.name) for series, one in asked.items()}
    series_at = {(one.line.target_id, one.sha, one.line.suite): series for series, one in asked.items()}
    order = {
        run.number: (series_at[place], rank)
        for place, of_place in stored_runs(connection, series_at).items()
        for rank, run in enumerate(of_place)
    }
    last: dict[int, tuple[int, Reason | None]] = {}
    # They come in any order, so the rank decides which run is the last one.
    for number, stored in runs.each_stored(connection, list(order)):
        series, rank = order[number]
        ordinal = ordinals[series]
        if ordinal is not None and at(stored.statuses, ordinal) and rank >= last.get(series, (0, None))[0]:
            last[series] = rank, reason_of(stored.reasons, ordinal)
    return {series: reason for series, (_, reason) in last.items() if reason is not None}


def _read_unlinked(
    connection: sa.Connection,
    lines: Mapping[int, GridLine],
    rows: Iterable[sa.RowMapping],
    suite: str,
    reported: Mapping[runs.Place, Sequence[runs.BareRun]],
) -> dict[int, bytes]:
    """Return the status columns of points outside the series, by their numbers: there are no changes at those."""
    groups = {
        row["id"]: [one.number for one in bare if one.is_stored]
        for row in rows
        if not (row["linked"] or row["infra"])
        and (bare := reported.get((lines[row["series_id"]].target_id, row["sha"], suite)))
    }
    return dict(zip(groups, runs.statuses(connection, list(groups.values())), strict=True))


class _Ended:
    """How a test ended at the linked points of a series, and what it was called, by its segments there."""

    def __init__(self, segments: Sequence[Segment], test: str) -> None:
        self._begin = [(one.committed_at, one.sha) for one in segments]
        self._ended = [
            (ABSENT if one.status is None else status_byte(one.status, one.flaky), one.name) for one in segments
        ]
        self._before = ABSENT, segments[0].name if segments else test
        self.was_flaky = any(one.flaky for one in segments)

    def at(self, position: Position) -> tuple[int, str]:
        """Return the status byte of the test at a point, and its name."""
        place = bisect_right(self._begin, position)
        return self._ended[place - 1] if place else self._before

    def over(self, chain: Sequence[Position]) -> list[LastingSegment]:
        """Return the segments of the test over some points that follow each other."""
        first = self.at(chain[0])[0]
        found = [(0, SEEN[first] if first else None)]
        for place in range(bisect_right(self._begin, chain[0]), bisect_right(self._begin, chain[-1])):
            byte = self._ended[place][0]
            found.append((bisect_left(chain, self._begin[place]), SEEN[byte] if byte else None))
        return found


def _explained(
    connection: sa.Connection,
    lines: Mapping[int, GridLine],
    found: Mapping[int, Sequence[TestRun]],
    ended: Mapping[int, _Ended],
    asked: GridRange,
) -> set[tuple[int, str]]:
    """Return where a new failure is explained by a quarantine or the flakiness of the test: series and commits."""
    fresh, explained = dict[int, list[TestRun]](), set[tuple[int, str]]()
    for series, of in found.items():
        quarantine = asked.quarantine(lines[series].about) if asked.quarantine else NO_QUARANTINE
        for one in of:
            if not is_new_failure(one.was, one.now):
                continue
            if quarantine.of(one.name):
                explained.add((series, one.sha))
            elif ended[series].was_flaky or is_flaky(one.now):
                fresh.setdefault(series, []).append(one)
    positions = {series: [one.position for one in of] for series, of in fresh.items()}
    windows = linked_windows(connection, positions) if positions else {}
    for series, of in fresh.items():
        chain = [(point.committed_at, point.sha) for point in windows.get(series, ())]
        explained |= {(series, one.sha) for one in of if _is_explained(one, chain, ended[series])}
    return explained


def _is_explained(one: TestRun, chain: Sequence[Position], ended: _Ended) -> bool:
    end = bisect_right(chain, one.position)
    window = chain[max(0, end - WINDOW) : end]
    past, runs = ended.over(window) if window else [], len(window)
    if not window or window[-1] != one.position:
        past, runs = [*past, (runs, SEEN[one.now])], runs + 1
    return flakiness_of(past, runs).explains


def is_new_failure(was: int | None, now: int) -> bool:
    """Say whether a status byte is that of a failure that there was not before."""
    return was is not None and _is_bad(now) and not _is_bad(was)


def _is_bad(byte: int) -> bool:
    return byte & STATUS_BITS in BAD_CODES
