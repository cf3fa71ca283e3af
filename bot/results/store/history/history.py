"""Trace one test from commit to commit, on every target and under every name that it had."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, at, is_flaky, status_of
from nightjar_formats.model import Status, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.store.tables import names, runs, schema
from bot.results.store.tables.names import SuiteNames, SuiteRow
from bot.results.store.tables.points import Position
from bot.results.store.tables.rename_pairs import PointRenames, renames_of

_END: Position = (float("inf"), "")


@dataclass(frozen=True, slots=True)
class Segment:
    """From a commit on, and until the next segment, a test ended like this; `status` is None where it was not there.

    `name` is what the test was called then. `committed_at` is in seconds since 1970.
    """

    sha: str
    committed_at: float
    status: Status | None
    flaky: bool
    name: str


TestHistory = tuple[Segment, ...]
"""The segments of a test on one target, oldest first."""


class _Change(NamedTuple):
    position: Position
    ordinal: int
    before: int | None
    after: int | None
    """None where only the name changed."""


class _Rename(NamedTuple):
    position: Position
    old: int
    new: int


@dataclass(slots=True)
class _Line:
    """One series, and what is known about the test in it: `oldest` is what it was called first."""

    about: TargetKey
    target_id: int
    first: Position
    oldest: int
    changes: list[_Change]


def history(
    connection: sa.Connection,
    known: SuiteNames,
    repository: str,
    suite: str,
    test_id: str,
    aliases: Aliases = NO_ALIASES,
) -> dict[TargetKey, TestHistory]:
    """Return the outcome of a test on every target; `aliases` are the names of tests that maintainers renamed."""
    found = names.find(connection, repository, suite)
    place = None if found is None else known.ordinal(connection, found, test_id)
    if found is None or place is None:
        return {}
    lines = _lines(connection, repository, found, place)
    name_of = known.all(connection, found)
    _trace(connection, lines, place, _OtherNames(name_of, aliases))
    starts = _starts(connection, lines, suite)
    traced = {line.about: _segments(line, starts[number], name_of) for number, line in lines.items()}
    return {about: segments for about, segments in sorted(traced.items()) if segments}


def _lines(connection: sa.Connection, repository: str, suite: SuiteRow, place: int) -> dict[int, _Line]:
    series, targets, points = schema.series, schema.targets, schema.points
    other = points.alias()
    first = (
        sa.select(other.c.id)
        .where(other.c.series_id == series.c.id, other.c.linked)
        .order_by(other.c.committed_at, other.c.sha)
        .limit(1)
        .correlate(series)
        .scalar_subquery()
    )
    statement = (
        sa.select(series.c.id, series.c.target_id, targets.c.lab, targets.c.target, points.c.committed_at, points.c.sha)
        .select_from(series.join(targets).join(points, points.c.id == first))
        .where(series.c.suite_id == suite.id)
    )
    return {
        row.id: _Line(TargetKey(repository, row.lab, row.target), row.target_id, (row.committed_at, row.sha), place, [])
        for row in connection.execute(statement)
    }


class _OtherNames:
    """The tests of a suite that stand for one another, by their places."""

    def __init__(self, name_of: Sequence[str], aliases: Aliases) -> None:
        self._name_of = name_of
        self._aliases = aliases
        self._place_of: dict[str, int] = {}

    def of(self, ordinal: int) -> set[int]:
        """Return the other tests that stand for one."""
        names = self._aliases.others(self._name_of[ordinal]) if self._aliases else []
        if names and not self._place_of:
            self._place_of = {name: place for place, name in enumerate(self._name_of)}
        return {self._place_of[name] for name in names if name in self._place_of}


def _trace(connection: sa.Connection, lines: Mapping[int, _Line], place: int, others: _OtherNames) -> None:
    """Go back through the names of a test, in all series at once."""
    # The work that is left: by series, a name of the test, and the moment until which it had that name.
    open_ones = dict.fromkeys(lines, (place, _END))
    every = renames_of(connection, lines)
    # Each round goes back by one name in every series, so the number of queries is that of names, not of series.
    while open_ones:
        other_names = {ordinal: others.of(ordinal) for ordinal, _ in open_ones.values()}
        asked = other_names.keys() | {other for names in other_names.values() for other in names}
        changes = _changes(connection, open_ones, asked)
        renames = _renames(every, open_ones, asked)
        further = {}
        for number, (ordinal, until) in open_ones.items():
            line = lines[number]
            known = [one for one in renames.get(number, ()) if one.position < until]
            came = max((one for one in known if one.new == ordinal), default=None)
            of_line = [one for one in changes.get(number, ()) if one.position < until]
            alias = _came_by_alias(ordinal, other_names[ordinal], of_line, known)
            came = max((one for one in (came, alias) if one), default=None)
            since = came.position if came else (float("-inf"), "")
            found = [one for one in of_line if one.ordinal == ordinal and since <= one.position]
            if came and came == alias:
                # It was not absent before, but had another name.
                found = [one._replace(before=None) if one.position == since else one for one in found]
            # Where a test gives up this name for another one, the name is absent from then on.
            left = [one.position for one in known if one.old == ordinal and one.position > since]
            found += [_Change(position, ordinal, None, ABSENT) for position in left]
            if came:
                # A rename alone is no change, but its segment has another name.
                if all(one.position != since for one in found):
                    found.append(_Change(since, ordinal, None, None))
                further[number] = (came.old, since)
                line.oldest = came.old
            line.changes = sorted(found, key=lambda one: one.position) + line.changes
        open_ones = further


def _came_by_alias(
    ordinal: int, names: Collection[int], changes: Sequence[_Change], renames: Sequence[_Rename]
) -> _Rename | None:
    """Return when a test last appeared under a name, of whose other names one had been removed by then."""
    appeared = [one.position for one in changes if one.ordinal == ordinal and one.before == ABSENT]
    for position in sorted(appeared, reverse=True):
        removed = []
        for name in names:
            events = [(one.position, one.after == ABSENT) for one in changes if one.ordinal == name]
            events += [(one.position, one.old == name) for one in renames if name in (one.old, one.new)]
            last = max((event for event in events if event[0] <= position), default=None)
            if last and last[1]:
                removed.append((last[0], name))
        if removed:
            return _Rename(position, max(removed)[1], ordinal)
    return None


def _changes(connection: sa.Connection, series: Collection[int], ordinals: Collection[int]) -> dict[int, list[_Change]]:
    changes, points = schema.changes, schema.points
    statement = (
        sa.select(*(changes.c[name] for name in ("series_id", "ordinal", "before", "after")))
        .add_columns(points.c.committed_at, points.c.sha)
        .join(points)
        .where(changes.c.series_id.in_(series), changes.c.ordinal.in_(ordinals))
    )
    found: dict[int, list[_Change]] = {}
    for number, ordinal, before, after, committed_at, sha in connection.execute(statement):
        found.setdefault(number, []).append(_Change((committed_at, sha), ordinal, before, after))
    return found


def _renames(
    every: Iterable[PointRenames], series: Collection[int], ordinals: Collection[int]
) -> dict[int, list[_Rename]]:
    found: dict[int, list[_Rename]] = {}
    for number, position, pairs in every:
        if number in series:
            by_new = {(pairs.old_of(ordinal), ordinal) for ordinal in ordinals}
            by_old = {(ordinal, pairs.new_of(ordinal)) for ordinal in ordinals}
            renames = (
                _Rename(position, old, new) for old, new in by_new | by_old if old is not None and new is not None
            )
            found.setdefault(number, []).extend(renames)
    return found


def _starts(connection: sa.Connection, lines: Mapping[int, _Line], suite: str) -> dict[int, int]:
    """Return the status byte at the beginning of each series; it is read if no change shows it."""
    starts = {}
    unknown = {}
    for number, line in lines.items():
        before = next((change.before for change in line.changes if change.before is not None), None)
        if before is None:
            unknown[number] = line
        else:
            starts[number] = before
    places = {number: (line.target_id, line.first[1]) for number, line in unknown.items()}
    reported = runs.reported_runs_at(connection, list(places.values()), suite)
    columns = runs.statuses(connection, [runs.stored(reported[place]) for place in places.values()])
    starts |= {number: at(column, unknown[number].oldest) for number, column in zip(places, columns, strict=True)}
    return starts


def _segments(line: _Line, start: int, name_of: Sequence[str]) -> TestHistory:
    byte = start
    segments = [_segment(line.first, byte, name_of[line.oldest])] if byte else []
    for change in line.changes:
        byte = byte if change.after is None else change.after
        segments.append(_segment(change.position, byte, name_of[change.ordinal]))
    return tuple(segments)


def _segment(position: Position, byte: int, name: str) -> Segment:
    committed_at, sha = position
    return Segment(sha, committed_at, status_of(byte), is_flaky(byte), name)
