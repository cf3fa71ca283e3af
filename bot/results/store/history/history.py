"""Trace one test from commit to commit, on every target and under every name that it had."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import NamedTuple

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, STATUS_BYTES, at, is_flaky, status_of
from nightjar_formats.model import Status, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.store.tables import names, runs, schema
from bot.results.store.tables.names import SuiteRow, names_of
from bot.results.store.tables.points import Position
from bot.results.store.tables.rename_pairs import PointRenames, renames_of

_END: Position = (float("inf"), "")
_START: Position = (float("-inf"), "")


class Segment(NamedTuple):
    """How a test ended from a commit on until the next segment; `status` is None if the test was absent.

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
    old_status: int | None
    new_status: int | None
    """Status bytes; None where only the name changed."""


class _Rename(NamedTuple):
    position: Position
    old: int
    new: int


@dataclass(slots=True)
class _Line:
    """A series, with its first commit and the changes of the test in it.

    `oldest` is the ordinal of the first name of the test.
    """

    target: TargetKey
    target_id: int
    first: Position
    oldest: int
    changes: list[_Change]


def history(
    connection: sa.Connection,
    repository: str,
    suite: str,
    test_id: str,
    aliases: Aliases = NO_ALIASES,
) -> dict[TargetKey, TestHistory]:
    """Return how a test ended on every target, under its earlier names too; targets without it are left out.

    `aliases` are the names of tests that maintainers renamed.
    """
    row = names.find(connection, repository, suite)
    return {} if row is None else history_on_targets(connection, repository, suite, row, test_id, aliases)


def history_on_targets(
    connection: sa.Connection,
    repository: str,
    suite: str,
    row: SuiteRow,
    test_id: str,
    aliases: Aliases,
    series: Collection[int] | None = None,
) -> dict[TargetKey, TestHistory]:
    """Do the same as `history` for a suite whose row was read; with `series`, only their targets count."""
    suite_names = names_of(connection, row)
    ordinal, name_of = suite_names.ordinals.get(test_id), suite_names.ordered
    if ordinal is None:
        return {}
    lines = _lines(connection, repository, row, ordinal, series)
    _trace(connection, lines, ordinal, _OtherNames(name_of, aliases))
    first_statuses = _first_statuses(connection, lines, suite)
    traced = {line.target: _segments(line, first_statuses[number], name_of) for number, line in lines.items()}
    return {target: segments for target, segments in sorted(traced.items()) if segments}


def _lines(
    connection: sa.Connection, repository: str, suite: SuiteRow, ordinal: int, numbers: Collection[int] | None
) -> dict[int, _Line]:
    """Return the series of a suite, all of them or some, with the present name of the test and without its changes."""
    series, targets, points = schema.series, schema.targets, schema.points
    linked = points.alias()
    first = (
        sa.select(linked.c.id)
        .where(linked.c.series_id == series.c.id, linked.c.linked)
        .order_by(linked.c.committed_at, linked.c.sha)
        .limit(1)
        .correlate(series)
        .scalar_subquery()
    )
    statement = (
        sa.select(series.c.id, series.c.target_id, targets.c.lab, targets.c.target, points.c.committed_at, points.c.sha)
        .select_from(series.join(targets).join(points, points.c.id == first))
        .where(series.c.suite_id == suite.id, sa.true() if numbers is None else series.c.id.in_(numbers))
    )
    return {
        row.id: _Line(
            TargetKey(repository, row.lab, row.target), row.target_id, (row.committed_at, row.sha), ordinal, []
        )
        for row in connection.execute(statement)
    }


class _OtherNames:
    """The names of a suite that stand for the same test because of aliases, by their ordinals."""

    def __init__(self, name_of: Sequence[str], aliases: Aliases) -> None:
        self._name_of = name_of
        self._aliases = aliases
        self._ordinal_of: dict[str, int] = {}

    def of(self, ordinal: int) -> set[int]:
        """Return the ordinals of the other names of a test."""
        other_names = self._aliases.others(self._name_of[ordinal]) if self._aliases else []
        if other_names and not self._ordinal_of:
            self._ordinal_of = {name: ordinal for ordinal, name in enumerate(self._name_of)}
        return {self._ordinal_of[name] for name in other_names if name in self._ordinal_of}


def _trace(connection: sa.Connection, lines: Mapping[int, _Line], test: int, aliases: _OtherNames) -> None:
    """Go back through the names of a test, in all series at once, and store its changes in `lines`.

    `test` is the ordinal of its present name.
    """
    # By series: the ordinal of the next name to follow, and the commit until which the test had that name.
    pending = dict.fromkeys(lines, (test, _END))
    point_renames = renames_of(connection, lines)
    # Each round goes back by one name in every series, so the number of queries is that of names, not of series.
    while pending:
        other_names = {ordinal: aliases.of(ordinal) for ordinal, _ in pending.values()}
        ordinals = other_names.keys() | {other_ordinal for names in other_names.values() for other_ordinal in names}
        changes = _changes(connection, pending, ordinals)
        renames = _renames(point_renames, pending, ordinals)
        earlier_names = {}
        for number, (ordinal, until) in pending.items():
            line = lines[number]
            line_renames = [rename for rename in renames.get(number, ()) if rename.position < until]
            found_rename = max((rename for rename in line_renames if rename.new == ordinal), default=None)
            line_changes = [change for change in changes.get(number, ()) if change.position < until]
            alias = _rename_by_alias(ordinal, other_names[ordinal], line_changes, line_renames)
            rename = max((rename for rename in (found_rename, alias) if rename), default=None)
            since = rename.position if rename else _START
            name_changes = [change for change in line_changes if change.ordinal == ordinal and since <= change.position]
            if rename and rename == alias:
                # It was not absent before, but had another name, which mostly ended at the same commit.
                old_status = next(
                    (
                        change.old_status
                        for change in line_changes
                        if change.ordinal == rename.old and change.position == since
                    ),
                    None,
                )
                name_changes = [
                    change._replace(old_status=old_status) if change.position == since else change
                    for change in name_changes
                ]
            # Where a test gives up this name for another one, the name is absent from then on.
            given_up = [rename.position for rename in line_renames if rename.old == ordinal and rename.position > since]
            name_changes += [_Change(position, ordinal, None, ABSENT) for position in given_up]
            if rename:
                # A rename alone is no change, but its segment has another name.
                if all(change.position != since for change in name_changes):
                    name_changes.append(_Change(since, ordinal, None, None))
                earlier_names[number] = (rename.old, since)
                line.oldest = rename.old
            line.changes = sorted(name_changes, key=attrgetter("position")) + line.changes
        pending = earlier_names


def _rename_by_alias(
    ordinal: int, other_ordinals: Collection[int], changes: Sequence[_Change], renames: Sequence[_Rename]
) -> _Rename | None:
    """Return the last rename to a name that an alias explains, or None.

    The test appeared under the name, and one of its other names had been removed by then: the last of these is the old
    name. If the name itself was removed after all others, the test only was absent for a while.
    """
    appeared = [change.position for change in changes if change.ordinal == ordinal and change.old_status == ABSENT]
    for position in sorted(appeared, reverse=True):
        removed = []
        for other_ordinal in other_ordinals:
            events = [
                (change.position, change.new_status == ABSENT) for change in changes if change.ordinal == other_ordinal
            ]
            events += [
                (rename.position, rename.old == other_ordinal)
                for rename in renames
                if other_ordinal in (rename.old, rename.new)
            ]
            last = max((event for event in events if event[0] <= position), default=None)
            if last and last[1]:
                removed.append((last[0], other_ordinal))
        own_removals = (
            change.position
            for change in changes
            if change.ordinal == ordinal and change.new_status == ABSENT and change.position < position
        )
        if removed and max(removed)[0] > max(own_removals, default=_START):
            return _Rename(position, max(removed)[1], ordinal)
    return None


def _changes(connection: sa.Connection, series: Collection[int], ordinals: Collection[int]) -> dict[int, list[_Change]]:
    """Return the changes of some names, by series."""
    changes, points = schema.changes, schema.points
    statement = (
        sa.select(*(changes.c[name] for name in ("series_id", "ordinal", "before", "after")))
        .add_columns(points.c.committed_at, points.c.sha)
        .join(points)
        .where(changes.c.series_id.in_(series), changes.c.ordinal.in_(ordinals))
    )
    changes_of: dict[int, list[_Change]] = {}
    for number, ordinal, old_status, new_status, committed_at, sha in connection.execute(statement).all():
        changes_of.setdefault(number, []).append(_Change((committed_at, sha), ordinal, old_status, new_status))
    return changes_of


def _renames(
    point_renames: Iterable[PointRenames], series: Collection[int], ordinals: Collection[int]
) -> dict[int, list[_Rename]]:
    """Return the renames to and from some names, by series."""
    renames_of_series: dict[int, list[_Rename]] = {}
    for number, position, pairs in point_renames:
        if number in series:
            by_new = {(pairs.old_of(ordinal), ordinal) for ordinal in ordinals}
            by_old = {(ordinal, pairs.new_of(ordinal)) for ordinal in ordinals}
            renames = (
                _Rename(position, old, new) for old, new in by_new | by_old if old is not None and new is not None
            )
            renames_of_series.setdefault(number, []).extend(renames)
    return renames_of_series


def _first_statuses(connection: sa.Connection, lines: Mapping[int, _Line], suite: str) -> dict[int, int]:
    """Return the status byte of the test at the first commit of each series.

    The first change in a series has it. The columns are read only of series without a change.
    """
    first_statuses = {}
    unknown = {}
    for number, line in lines.items():
        old_status = next((change.old_status for change in line.changes if change.old_status is not None), None)
        if old_status is None:
            unknown[number] = line
        else:
            first_statuses[number] = old_status
    places = {number: (line.target_id, line.first[1], suite) for number, line in unknown.items()}
    columns = runs.columns_at(connection, places.values())
    return first_statuses | {number: at(columns[place], unknown[number].oldest) for number, place in places.items()}


_ENDS = [(status_of(byte), is_flaky(byte)) for byte in range(STATUS_BYTES)]
"""How a test ended, by its status byte."""


def _segments(line: _Line, byte: int, name_of: Sequence[str]) -> TestHistory:
    committed_at, sha = line.first
    segments = [Segment(sha, committed_at, *_ENDS[byte], name_of[line.oldest])] if byte else []
    for (committed_at, sha), ordinal, _, new_status in line.changes:
        byte = byte if new_status is None else new_status
        segments.append(Segment(sha, committed_at, *_ENDS[byte], name_of[ordinal]))
    return tuple(segments)
