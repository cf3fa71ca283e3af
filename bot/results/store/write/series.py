"""Store how each test changed from commit to commit on the nightly branch.

A *point* is one suite at one commit on one target. Complete points of the nightly branch that are not infra are linked,
in the order of (time of the commit, SHA). Each stores its differences from the previous point, and the tests that were
renamed between the two; both depend on these two points only. So the rows don't depend on the order in which runs
arrive, and a late commit changes only its own rows and those of its successor.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, STATUS_BYTES, differences, status_of

from bot.results.compare.searching import Renames
from bot.results.store.grid import stored_counts
from bot.results.store.tables import runs, schema
from bot.results.store.tables.cells import count_cell
from bot.results.store.tables.names import SuiteRow, uncommitted_names
from bot.results.store.tables.rename_pairs import pairs_blob


@dataclass(frozen=True, slots=True)
class Series:
    """The points of one suite on one target."""

    id: int
    suite: SuiteRow
    suite_name: str
    target_id: int


@dataclass(frozen=True, slots=True)
class Facts:
    """The facts of a point."""

    sha: str
    committed_at: float
    pull_request: int | None
    mainline: bool
    complete: bool
    infra: str

    @property
    def linked(self) -> bool:
        """Whether the point belongs to the series.

        In others, tests would look removed that did not run, and faults of a lab would look like failures.
        """
        return self.mainline and self.complete and not self.infra


T = TypeVar("T")
Point = sa.RowMapping | Mapping[str, Any]
"""A row of `nightjar_points`."""

# Statements that each run needs are built once: building one takes longer than executing it.
_TABLE = schema.points
_FIND = sa.select(schema.series.c.id).where(
    schema.series.c.suite_id == sa.bindparam("suite_id"), schema.series.c.target_id == sa.bindparam("target_id")
)
_POINT = sa.select(_TABLE).where(_TABLE.c.series_id == sa.bindparam("series_id"), _TABLE.c.sha == sa.bindparam("sha"))
_NEW_POINT = _TABLE.insert().returning(_TABLE.c.id)
_POSITION = sa.tuple_(_TABLE.c.committed_at, _TABLE.c.sha)
_REFERENCE = sa.tuple_(sa.bindparam("committed_at", type_=sa.Double), sa.bindparam("sha", type_=sa.Text))
_LINKED = sa.select(_TABLE).where(_TABLE.c.series_id == sa.bindparam("series_id"), _TABLE.c.linked)
_BEFORE = _LINKED.where(_POSITION < _REFERENCE).order_by(_TABLE.c.committed_at.desc(), _TABLE.c.sha.desc()).limit(1)
_AFTER = _LINKED.where(_POSITION > _REFERENCE).order_by(_TABLE.c.committed_at, _TABLE.c.sha).limit(1)
_FORGET = (
    schema.changes.delete().where(schema.changes.c.point_id == sa.bindparam("id")),
    schema.renames.delete().where(
        schema.renames.c.series_id == sa.bindparam("of_series"), schema.renames.c.point_id == sa.bindparam("id")
    ),
)
_STATUS_OF = tuple(map(status_of, range(STATUS_BYTES)))
_NEW_RENAMES = schema.renames.insert()
_NEW_CHANGES = "INSERT INTO nightjar_changes (series_id, ordinal, point_id, before, after) VALUES (?, ?, ?, ?, ?)"


def find(connection: sa.Connection, suite: SuiteRow, suite_name: str, target_id: int) -> Series:
    """Return the series of a suite on a target; create it if it is missing."""
    values = {"suite_id": suite.id, "target_id": target_id}
    series_id = connection.execute(_FIND, values).scalar()
    if series_id is None:
        series_id = connection.execute(schema.series.insert().values(values).returning(schema.series.c.id)).scalar_one()
    return Series(series_id, suite, suite_name, target_id)


def place(connection: sa.Connection, series: Series, facts: Facts, statuses: bytes, find_renames: Renames) -> bool:
    """Write a point and link it with its neighbors; return whether it has changed.

    `facts` are about the point, and `statuses` is its merged status column.
    """
    key = {"series_id": series.id, "sha": facts.sha}
    row = connection.execute(_POINT, key).mappings().first()
    values = {
        "committed_at": facts.committed_at,
        "pull_request": facts.pull_request,
        "mainline": facts.mainline,
        "complete": facts.complete,
        "infra": facts.infra,
        "linked": facts.linked,
    }
    changed = row is None or any(row[name] != value for name, value in values.items())
    # Counted without the commit before: only `new` and `fixed` depend on that, and `stored_counts` stores `new` below.
    values |= stored_counts.count_columns(count_cell(None, statuses) if facts.linked else None)
    renamed = False
    # Remove it from its old position first: the admission may now have another time, which orders the series.
    if row is not None and row["linked"]:
        renamed = _unlink(connection, series, row, find_renames)
    if row is None:
        number = connection.execute(_NEW_POINT, values | key).scalar_one()
    else:
        number = row["id"]
        connection.execute(_TABLE.update().filter_by(id=number).values(values))
    if facts.linked:
        point: Point = values | key | {"id": number}
        predecessor, successor = _neighbors(connection, point)
        columns = {facts.sha: statuses}
        renamed |= _compare(connection, series, predecessor, point, find_renames, columns, is_new=row is None)
        renamed |= _compare(connection, series, point, successor, find_renames, columns)
    if facts.linked or (row is not None and row["linked"]):
        newest = number if facts.linked and successor is None else None
        stored_counts.count_new(connection, series.id, (facts.committed_at, facts.sha), newest, renamed=renamed)
    if row is not None and row["linked"] and row["committed_at"] != facts.committed_at:
        # The points that followed it at its old position have another window now.
        stored_counts.count_new(connection, series.id, (row["committed_at"], row["sha"]), None, renamed=False)
    return changed


def _neighbors(connection: sa.Connection, row: Point) -> tuple[Point | None, Point | None]:
    """Return the nearest linked points before and after a point."""
    position = {name: row[name] for name in ("series_id", "committed_at", "sha")}
    predecessor, successor = (connection.execute(side, position).mappings().first() for side in (_BEFORE, _AFTER))
    return predecessor, successor


def _unlink(connection: sa.Connection, series: Series, row: Point, find_renames: Renames) -> bool:
    """Remove a point from the series; return whether a rename was found or removed."""
    connection.execute(_TABLE.update().filter_by(id=row["id"]).values(linked=False))
    forgotten = _forget(connection, row)
    predecessor, successor = _neighbors(connection, row)
    return _compare(connection, series, predecessor, successor, find_renames, {}) or forgotten


def _forget(connection: sa.Connection, row: Point) -> bool:
    """Remove the differences and renames of a point; return whether there were renames."""
    changes, renames = _FORGET
    connection.execute(changes, {"id": row["id"]})
    return connection.execute(renames, {"id": row["id"], "of_series": row["series_id"]}).rowcount > 0


def _compare(
    connection: sa.Connection,
    series: Series,
    predecessor: Point | None,
    successor: Point | None,
    find_renames: Renames,
    already_read: Mapping[str, bytes],
    *,
    is_new: bool = False,
) -> bool:
    """Store the differences from one point to the next; the first point of a series has none.

    `already_read` has status columns that need not be read, by commit. With `is_new` there are no rows to replace.
    Return whether a rename was found or removed.
    """
    if successor is None:
        return False
    forgotten = not is_new and _forget(connection, successor)
    if predecessor is None:
        return forgotten
    columns = _columns(connection, series, (predecessor["sha"], successor["sha"]), already_read)
    # The later column may be longer, because the suite has had more names since, or shorter.
    old, new = (column.ljust(max(map(len, columns)), bytes((ABSENT,))) for column in columns)
    changed = list(differences(old, new))
    renamed = _renamed(connection, series, old, new, changed, find_renames)
    removed = set(renamed.values())
    point_key = {"series_id": series.id, "point_id": successor["id"]}
    rows = []
    for ordinal in changed:
        # A renamed test is compared with its old name. If it ended in the same way, neither name needs a row.
        old_status, new_status = old[renamed.get(ordinal, ordinal)], new[ordinal]
        if old_status != new_status and ordinal not in removed:
            rows.append((series.id, ordinal, successor["id"], old_status, new_status))
    if rows:
        # By the driver itself: SQLAlchemy takes longer to bind thousands of rows than the database takes to write them.
        is_postgresql = connection.dialect.name == "postgresql"
        connection.exec_driver_sql(_NEW_CHANGES.replace("?", "%s") if is_postgresql else _NEW_CHANGES, rows)
    if renamed:
        connection.execute(_NEW_RENAMES, point_key | {"pairs": pairs_blob(renamed)})
    return bool(renamed) or forgotten


def _columns(
    connection: sa.Connection, series: Series, shas: Sequence[str], already_read: Mapping[str, bytes]
) -> list[bytes]:
    """Return the merged status columns of commits; `already_read` has those that need not be read."""
    places = [(series.target_id, sha) for sha in shas if sha not in already_read]
    reported = runs.reported_runs_at(connection, places, series.suite_name)
    statuses = runs.statuses(connection, [runs.stored(reported.get(place, [])) for place in places])
    columns = {**already_read, **dict(zip((sha for _, sha in places), statuses, strict=True))}
    return [columns[sha] for sha in shas]


def _at(values: Sequence[T], ordinals: Iterable[int]) -> Iterable[T]:
    return map(values.__getitem__, ordinals)


def _renamed(
    connection: sa.Connection, series: Series, old: bytes, new: bytes, changed: list[int], find_renames: Renames
) -> dict[int, int]:
    """Return the ordinals of the renamed tests, with their old ones; `old` and `new` are status columns."""
    # A rename needs a test that was removed and one that was added.
    if all(old[ordinal] for ordinal in changed) or all(new[ordinal] for ordinal in changed):
        return {}
    name_of = uncommitted_names(connection, series.suite)
    removed = [ordinal for ordinal in changed if not new[ordinal]]
    added = [ordinal for ordinal in changed if not old[ordinal]]
    # The search sorts names, so the result does not depend on their ordinals.
    removed_statuses, added_statuses = (
        dict(zip(_at(name_of, ordinals), _at(_STATUS_OF, _at(column, ordinals)), strict=True))
        for column, ordinals in ((old, removed), (new, added))
    )
    pairs = find_renames(removed_statuses, added_statuses)
    old_ordinal = dict(zip(removed_statuses, removed, strict=True))
    new_ordinal = dict(zip(added_statuses, added, strict=True))
    return {new_ordinal[new_name]: old_ordinal[old_name] for old_name, new_name in pairs.items()}
