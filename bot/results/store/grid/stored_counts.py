"""Store the counts of a point together with its run, so that a grid need not read columns.

The counts are the same that a grid would compute from the columns. Only linked points have them. Whether a failure is
new depends on earlier points, so a late run also changes the counts of later points. Aliases and quarantines come from
app.yaml and are not stored, so the reader applies them.

To render a grid of 20 targets, the bot once read 300 status columns and followed the flaky tests of each target through
53 runs, which took a third of a second. Now the transaction that stores a run also counts how many tests of its point
passed, failed, were skipped, were flaky, and newly failed.

- A run that arrives late, or is read again, changes the counts of the 40 points after it. The same transaction counts
  them again.
- After a rename, the counts of new failures are unknown for all points of the series except the newest 41.
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
from bot.results.store.history.explained import FreshFailures, explained_ordinals
from bot.results.store.tables import schema
from bot.results.store.tables.cells import CellCounts
from bot.results.store.tables.points import Position

NAMES = ("passed", "failed", "skipped", "flaky")
_POINTS, _CHANGES = schema.points, schema.changes
_LINKED = (_POINTS.c.series_id == sa.bindparam("of_series"), _POINTS.c.linked)
_POSITION = sa.tuple_(_POINTS.c.committed_at, _POINTS.c.sha)
_REFERENCE = sa.tuple_(sa.bindparam("at", type_=sa.Double), sa.bindparam("of_sha", type_=sa.Text))
# A point is compared with the one before it, and its flakiness goes by a window that ends with it.
_FROM_REFERENCE = (
    sa.select(_POINTS.c.id, _POINTS.c.committed_at, _POINTS.c.sha)
    .where(*_LINKED, _POSITION >= _REFERENCE)
    .order_by(_POINTS.c.committed_at, _POINTS.c.sha)
    .limit(WINDOW + 1)
)
_NEWEST = (
    sa.select(_POINTS.c.id, _POINTS.c.committed_at, _POINTS.c.sha)
    .where(*_LINKED)
    .order_by(_POINTS.c.committed_at.desc(), _POINTS.c.sha.desc())
    .limit(WINDOW + 1)
)
_NEW_FAILURES = sa.select(_CHANGES.c.point_id, _CHANGES.c.ordinal, _CHANGES.c.after).where(
    _CHANGES.c.point_id.in_(sa.bindparam("ids", expanding=True)),
    _CHANGES.c.after.op("&")(STATUS_BITS).in_(BAD_CODES),
    _CHANGES.c.before.op("&")(STATUS_BITS).not_in(BAD_CODES),
)
_CLEAR_NEW = _POINTS.update().where(_POINTS.c.series_id == sa.bindparam("of_series"), _POINTS.c.linked).values(new=None)
_SET_NEW = _POINTS.update().where(_POINTS.c.id == sa.bindparam("of_id")).values(new=sa.bindparam("count"))


def count_columns(counts: CellCounts | None) -> dict[str, int | None]:
    """Return the values of a point's count columns except the new failures; None: no counts."""
    return {"new": None, **{name: getattr(counts, name) if counts else None for name in NAMES}}


def read_counts(row: sa.RowMapping) -> CellCounts | None:
    """Return the counts of a point's row; None if they are not stored."""
    values = {name: row[name] for name in (*NAMES, "new")}
    return None if None in values.values() else CellCounts(**values)


def count_new(connection: sa.Connection, series: int, position: Position, newest: int | None, *, renamed: bool) -> None:
    """Store the number of new failures at the points of a series that a change at a position may affect.

    `newest` is the point at the position if it is the last one. With `renamed`, names of tests have changed, so counts
    of older points may be wrong: they become NULL, and the reader counts the columns.
    """
    parameters = {"of_series": series, "at": position[0], "of_sha": position[1]}
    if renamed:
        connection.execute(_CLEAR_NEW, {"of_series": series})
        positions = {row.id: (row.committed_at, row.sha) for row in connection.execute(_NEWEST, parameters)}
    elif newest is not None:
        positions = {newest: position}
    else:
        positions = {row.id: (row.committed_at, row.sha) for row in connection.execute(_FROM_REFERENCE, parameters)}
    statuses_at: dict[int, dict[int, int]] = {}
    for point, ordinal, status in connection.execute(_NEW_FAILURES, {"ids": [*positions]}) if positions else ():
        statuses_at.setdefault(point, {})[ordinal] = status
    fresh_failures = [_failures_at(positions[number], statuses) for number, statuses in statuses_at.items()]
    explained = explained_ordinals(connection, {}, {series: fresh_failures} if fresh_failures else {}, NO_ALIASES)
    counts = [
        {"of_id": number, "count": len(statuses_at.get(number, ())) - len(explained.get((series, sha), ()))}
        for number, (_, sha) in positions.items()
    ]
    if counts:
        connection.execute(_SET_NEW, counts)


def _failures_at(position: Position, statuses: Mapping[int, int]) -> FreshFailures:
    column = bytearray(max(statuses) + 1)
    for ordinal, byte in statuses.items():
        column[ordinal] = byte
    return FreshFailures(position, sorted(statuses), bytes(column), bytes(column))
