"""Read one test at the newest commits of each target from its changes. Columns are read only of incomplete runs.

However many targets there are, it takes a few statements, which indices answer.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, BAD_CODES, CODES, STATUS_BITS, at, status_byte
from nightjar_formats.model import Status

from bot.results.compare.quarantine import NO_QUARANTINE
from bot.results.store import runs, schema
from bot.results.store.explained import FreshFailures, explained_places
from bot.results.store.grid_rows import GridLine, GridRange, newest_rows, with_earlier
from bot.results.store.names import SuiteNames
from bot.results.store.trace import Position, Segment, TestHistory


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
    suite = next(iter(lines.values())).suite
    reported = runs.bare_runs(connection, {(lines[row["series_id"]].target_id, row["sha"], suite) for row in rows})
    unlinked = _read_unlinked(connection, lines, rows, suite, reported)
    found: dict[int, list[TestRun]] = {series: [] for series in lines}
    for row, earlier in with_earlier(rows, previous):
        series, line = row["series_id"], lines[row["series_id"]]
        bare = reported.get((line.target_id, row["sha"], suite), [])
        if not bare:
            continue
        segments, was = traced.get(series, ()), None
        now, name = _ended(segments, (row["committed_at"], row["sha"]), test)
        if row["id"] in unlinked:
            place = known.ordinal(connection, line.row, name)
            now = ABSENT if place is None else at(unlinked[row["id"]], place)
        if earlier is not None and not row["infra"]:
            was, _ = _ended(segments, (earlier["committed_at"], earlier["sha"]), test)
        facts = (row["sha"], row["committed_at"], row["linked"], row["complete"], row["infra"])
        stored = [one.number for one in bare if one.is_stored]
        found[series].append(TestRun(*facts, bare[-1].run_id, stored, was, now, name))
    explained = _explained(connection, known, lines, found, asked)
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


def _ended(segments: Sequence[Segment], position: Position, test: str) -> tuple[int, str]:
    """Return the status byte of a test at a linked point, and what it was called."""
    place = bisect_right(segments, position, key=lambda one: (one.committed_at, one.sha))
    if not place:
        return ABSENT, segments[0].name if segments else test
    last = segments[place - 1]
    return ABSENT if last.status is None else status_byte(last.status, last.flaky), last.name


def _explained(
    connection: sa.Connection,
    known: SuiteNames,
    lines: Mapping[int, GridLine],
    found: Mapping[int, Sequence[TestRun]],
    asked: GridRange,
) -> set[tuple[int, str]]:
    """Return where a new failure is explained by a quarantine or the flakiness of the test: series and commits."""
    fresh, quarantined = {}, set[tuple[int, str]]()
    for series, of in found.items():
        those = list[FreshFailures]()
        quarantine = asked.quarantine(lines[series].about) if asked.quarantine else NO_QUARANTINE
        for one in of:
            if one.was is None or not is_new_failure(one.was, one.now):
                continue
            if quarantine.of(one.name):
                quarantined.add((series, one.sha))
            else:
                place = known.ordinal(connection, lines[series].row, one.name) or 0
                now, last = (bytes(place) + bytes([byte]) for byte in (one.now, one.now if one.linked else one.was))
                those.append(FreshFailures(one.position, [place], now, last))
        if those:
            fresh[series] = those
    suites = {series: line.row for series, line in lines.items()}
    every = explained_places(connection, known, suites, fresh, asked.aliases)
    return quarantined | {shown for shown, places in every.items() if places}


def is_new_failure(was: int | None, now: int) -> bool:
    """Say whether a status byte is that of a failure that there was not before."""
    return was is not None and _is_bad(now) and not _is_bad(was)


def _is_bad(byte: int) -> bool:
    return byte & STATUS_BITS in BAD_CODES
