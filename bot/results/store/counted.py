"""How many tests of a point ended in which way: stored when its run is, so that a grid reads numbers.

They are what `Grids` would count from the columns. Points of the series alone have them. The new failures of a point go
by those before it, so that what arrives late changes the counts of the points after it too. Aliases and quarantines,
which are configured and not stored, are left to whoever reads.
"""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from nightjar_formats.columns import BAD_CODES, STATUS_BITS

from bot.core.aliases import NO_ALIASES
from bot.results.compare.flaky import WINDOW
from bot.results.store import schema
from bot.results.store.cells import CellCounts
from bot.results.store.explained import FreshFailures, explained_places
from bot.results.store.names import SuiteNames
from bot.results.store.trace import Position

NAMES = ("passed", "failed", "skipped", "flaky")
_POINTS, _CHANGES = schema.points, schema.changes
_LINKED = (_POINTS.c.series_id == sa.bindparam("of_series"), _POINTS.c.linked)
_POSITION = sa.tuple_(_POINTS.c.committed_at, _POINTS.c.sha)
_HERE = sa.tuple_(sa.bindparam("at", type_=sa.Double), sa.bindparam("of_sha", type_=sa.Text))
# A point is compared with the one before it, and its flakiness goes by a window that ends with it.
_FROM_HERE = (
    sa.select(_POINTS.c.id, _POINTS.c.committed_at, _POINTS.c.sha)
    .where(*_LINKED, _POSITION >= _HERE)
    .order_by(_POINTS.c.committed_at, _POINTS.c.sha)
    .limit(WINDOW + 1)
)
_NEWEST = (
    sa.select(_POINTS.c.id, _POINTS.c.committed_at, _POINTS.c.sha)
    .where(*_LINKED)
    .order_by(_POINTS.c.committed_at.desc(), _POINTS.c.sha.desc())
    .limit(WINDOW + 1)
)
_CHANGED = sa.select(_CHANGES.c.point_id, _CHANGES.c.ordinal, _CHANGES.c.before, _CHANGES.c.after).where(
    _CHANGES.c.point_id.in_(sa.bindparam("ids", expanding=True))
)
_UNKNOWN = _POINTS.update().where(_POINTS.c.series_id == sa.bindparam("of_series"), _POINTS.c.linked).values(new=None)
_KNOWN = _POINTS.update().where(_POINTS.c.id == sa.bindparam("of_id")).values(new=sa.bindparam("count"))


def of_tests(counts: CellCounts | None) -> dict[str, int | None]:
    """Return the values of a point's columns but for its new failures; None stands for no counts."""
    return {"new": None, **{name: getattr(counts, name) if counts else None for name in NAMES}}


def read_counts(row: sa.RowMapping) -> CellCounts | None:
    """Return the counts of a point's row, None where they are not stored."""
    values = {name: row[name] for name in (*NAMES, "new")}
    return None if None in values.values() else CellCounts(**values)


def count_new(
    connection: sa.Connection,
    known: SuiteNames,
    series: int,
    position: Position,
    newest: int | None,
    *,
    renamed: bool,
) -> None:
    """Store how many failures are new at the points of a series that a change at a position may change.

    `newest` is the point there if none comes after it. With `renamed`, a test has other names than before, and what
    is known about older points may be wrong: those are left to whoever reads them.
    """
    here = {"of_series": series, "at": position[0], "of_sha": position[1]}
    if renamed:
        connection.execute(_UNKNOWN, {"of_series": series})
        places = {row.id: (row.committed_at, row.sha) for row in connection.execute(_NEWEST, here)}
    elif newest is not None:
        places = {newest: position}
    else:
        places = {row.id: (row.committed_at, row.sha) for row in connection.execute(_FROM_HERE, here)}
    fresh: dict[int, dict[int, int]] = {}
    for row in connection.execute(_CHANGED, {"ids": [*places]}) if places else ():
        if _is_bad(row.after) and not _is_bad(row.before):
            fresh.setdefault(row.point_id, {})[row.ordinal] = row.after
    failures = [_fresh(places[number], ended) for number, ended in fresh.items()]
    explained = explained_places(connection, known, {}, {series: failures} if failures else {}, NO_ALIASES)
    counts = [
        {"of_id": number, "count": len(fresh.get(number, ())) - len(explained.get((series, sha), ()))}
        for number, (_, sha) in places.items()
    ]
    if counts:
        connection.execute(_KNOWN, counts)


def _fresh(position: Position, ended: Mapping[int, int]) -> FreshFailures:
    column = bytearray(max(ended) + 1)
    for ordinal, byte in ended.items():
        column[ordinal] = byte
    return FreshFailures(position, sorted(ended), bytes(column), bytes(column))


def _is_bad(byte: int) -> bool:
    return byte & STATUS_BITS in BAD_CODES
