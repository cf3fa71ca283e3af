"""Store the counts of a point together with its run, so that a grid need not read columns.

The counts are the same that a grid would compute from the columns. Only linked points have them. Whether a failure is
new depends on earlier points, so a late run also changes the counts of later points. Aliases and quarantines come from
app.yaml and are not stored, so the reader applies them.

To render a grid of 20 targets, the bot once read 300 status columns and followed the flaky tests of each target through
53 runs, which took a third of a second. Now the transaction that stores a run also counts how many tests of its point
passed, failed, were skipped, were flaky, newly failed, and failed as their flakiness explains.

- A run that arrives late, or is read again, changes the counts of the 40 points after it. The same transaction counts
  them again.
- After a rename, the counts of new and of explained failures are unknown for all points of the series except the newest
  41.
- A failure is explained only if it is one of the first two in a row. So the changes at a point and at the one before
  name all candidates, and no column is read.
- Null means unknown: the reader then counts the columns. So the migration had nothing to fill in. Incomplete runs,
  which change with every shard, have no counts.

`tests/results/test_stored_counts.py` compares both sources of a count for runs in any order.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from nightjar_formats.columns import BAD_CODES, STATUS_BITS

from bot.core.aliases import NO_ALIASES
from bot.results.compare.flaky import WINDOW
from bot.results.store.history.explained import PointColumn, explained_ordinals
from bot.results.store.tables import schema
from bot.results.store.tables.cells import FAILS, CellCounts
from bot.results.store.tables.points import Position
from bot.results.store.tables.rename_pairs import RenamePairs

NAMES = ("passed", "failed", "skipped", "flaky")
_POINTS, _CHANGES = schema.points, schema.changes
_LINKED = (_POINTS.c.series_id == sa.bindparam("of_series"), _POINTS.c.linked)
_POSITION = sa.tuple_(_POINTS.c.committed_at, _POINTS.c.sha)
_REFERENCE = sa.tuple_(sa.bindparam("at", type_=sa.Double), sa.bindparam("of_sha", type_=sa.Text))
_SELECT = sa.select(_POINTS.c.id, _POINTS.c.committed_at, _POINTS.c.sha)
_NEWEST_FIRST = (_POINTS.c.committed_at.desc(), _POINTS.c.sha.desc())
# A point is compared with the one before it, and its flakiness goes by a window that ends with it.
_FROM_REFERENCE = (
    _SELECT.where(*_LINKED, _POSITION >= _REFERENCE).order_by(_POINTS.c.committed_at, _POINTS.c.sha).limit(WINDOW + 1)
)
_NEWEST = _SELECT.where(*_LINKED).order_by(*_NEWEST_FIRST).limit(WINDOW + 1)
_BEFORE = _SELECT.where(*_LINKED, _POSITION < _REFERENCE).order_by(*_NEWEST_FIRST).limit(1)
_FAILURES = sa.select(_CHANGES.c.point_id, _CHANGES.c.ordinal, _CHANGES.c.before, _CHANGES.c.after).where(
    _CHANGES.c.point_id.in_(sa.bindparam("ids", expanding=True)),
    _CHANGES.c.after.op("&")(STATUS_BITS).in_(BAD_CODES),
)
_ENDED = sa.select(_CHANGES.c.point_id, _CHANGES.c.ordinal).where(
    _CHANGES.c.point_id.in_(sa.bindparam("ids", expanding=True)),
    _CHANGES.c.before.op("&")(STATUS_BITS).in_(BAD_CODES),
)
_RENAMES = sa.select(schema.renames.c.point_id, schema.renames.c.pairs).where(
    schema.renames.c.series_id == sa.bindparam("of_series"),
    schema.renames.c.point_id.in_(sa.bindparam("ids", expanding=True)),
)
_CLEAR = (
    _POINTS.update()
    .where(_POINTS.c.series_id == sa.bindparam("of_series"), _POINTS.c.linked)
    .values(new=None, known=None)
)
_SET = (
    _POINTS.update()
    .where(_POINTS.c.id == sa.bindparam("of_id"))
    .values(new=sa.bindparam("new_count"), known=sa.bindparam("known_count"))
)


def count_columns(counts: CellCounts | None) -> dict[str, int | None]:
    """Return the values of a point's count columns except new and explained failures; None: no counts.

    `counts` are those without a commit before, so their `known` failures are the flaky ones.
    """
    values = {name: getattr(counts, name) if counts else None for name in NAMES}
    return {"new": None, "known": None, "failed_flaky": counts.known if counts else None, **values}


def read_counts(row: sa.RowMapping) -> CellCounts | None:
    """Return the counts of a point's row; None if they are not stored."""
    values = {name: row[name] for name in (*NAMES, "new")}
    # A point of an older version has counts of failures, but not of explained ones.
    known = (row["known"], row["failed_flaky"]) if row["failed"] else (0, 0)
    if None in values.values() or None in known:
        return None
    return CellCounts(**values, known=sum(known))


def count_new(connection: sa.Connection, series: int, position: Position, newest: int | None, *, renamed: bool) -> None:
    """Store the numbers of new and explained failures at the points of a series that a change at a position may affect.

    `newest` is the point at the position if it is the last one. With `renamed`, names of tests have changed, so counts
    of older points may be wrong: they become NULL, and the reader counts the columns.
    """
    parameters = {"of_series": series, "at": position[0], "of_sha": position[1]}
    if renamed:
        connection.execute(_CLEAR, {"of_series": series})
        positions = {row.id: (row.committed_at, row.sha) for row in connection.execute(_NEWEST, parameters)}
    elif newest is not None:
        positions = {newest: position}
    else:
        positions = {row.id: (row.committed_at, row.sha) for row in connection.execute(_FROM_REFERENCE, parameters)}
    if not positions:
        return
    failures = _PointFailures(connection, series, positions)
    columns = [failures.column(number) for number in positions]
    explained = explained_ordinals(
        connection,
        {},
        {series: [column for column in columns if column.column]} if any(column.column for column in columns) else {},
        NO_ALIASES,
    )
    counts = []
    for number, (_, sha) in positions.items():
        explained_here = explained.get((series, sha), ())
        new = len(failures.new(number).difference(explained_here))
        counts.append({"of_id": number, "new_count": new, "known_count": len(explained_here)})
    connection.execute(_SET, counts)


class _PointFailures:
    """The failures at points of a series that may be explained, from the changes there and at the points before.

    `positions` are points that follow each other, in any order.
    """

    def __init__(self, connection: sa.Connection, series: int, positions: Mapping[int, Position]) -> None:
        ordered = sorted(positions, key=positions.__getitem__)
        oldest = positions[ordered[0]]
        row = connection.execute(_BEFORE, {"of_series": series, "at": oldest[0], "of_sha": oldest[1]}).first()
        chain = [*([row.id] if row is not None else []), *ordered]
        self._positions = positions
        self._before = dict(zip(chain[1:], chain, strict=False))
        self._changes: dict[int, dict[int, tuple[int, int]]] = {number: {} for number in chain}
        for point, ordinal, before, after in connection.execute(_FAILURES, {"ids": chain}):
            self._changes[point][ordinal] = before, after
        # Failures that began at the point before, and which point may have ended or renamed.
        lasting = [number for number, before in self._before.items() if self._changes[before]]
        self._ended: dict[int, set[int]] = {number: set() for number in lasting}
        self._new_names: dict[int, dict[int, int]] = {number: {} for number in lasting}
        if lasting:
            for point, ordinal in connection.execute(_ENDED, {"ids": lasting}):
                self._ended[point].add(ordinal)
            for point, pairs in connection.execute(_RENAMES, {"of_series": series, "ids": lasting}):
                self._new_names[point] = {old: new for new, old in RenamePairs(pairs)}

    def new(self, number: int) -> set[int]:
        """Return the tests that fail at a point and did not fail before."""
        return {
            ordinal
            for ordinal, (before, after) in self._changes[number].items()
            if after in FAILS and before & STATUS_BITS not in BAD_CODES
        }

    def column(self, number: int) -> PointColumn:
        """Return a column of a point with all of its failures that may be explained."""
        statuses = {ordinal: after for ordinal, (_, after) in self._changes[number].items()}
        if number in self._ended:
            for old, (_, after) in self._changes[self._before[number]].items():
                ordinal = self._new_names[number].get(old, old)
                if ordinal not in self._ended[number]:
                    statuses.setdefault(ordinal, after)
        column = bytearray(max(statuses, default=-1) + 1)
        for ordinal, byte in statuses.items():
            column[ordinal] = byte
        return PointColumn(self._positions[number], bytes(column), bytes(column))
