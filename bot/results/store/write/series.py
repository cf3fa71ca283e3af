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
from bot.results.store.grid import counted
from bot.results.store.tables import runs, schema
from bot.results.store.tables.cells import count_cell
from bot.results.store.tables.names import SuiteNames, SuiteRow
from bot.results.store.tables.rename_pairs import pairs_blob


@dataclass(frozen=True, slots=True)
class Series:
    """The points of one suite on one target."""

    id: int
    suite: SuiteRow
    suite_name: str
    target_id: int
    known: SuiteNames


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
        """Whether it belongs to the series. Others would show tests as removed that did not run, or faults of a lab."""
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
_HERE = sa.tuple_(sa.bindparam("committed_at", type_=sa.Double), sa.bindparam("sha", type_=sa.Text))
_LINKED = sa.select(_TABLE).where(_TABLE.c.series_id == sa.bindparam("series_id"), _TABLE.c.linked)
_BEFORE = _LINKED.where(_POSITION < _HERE).order_by(_TABLE.c.committed_at.desc(), _TABLE.c.sha.desc()).limit(1)
_AFTER = _LINKED.where(_POSITION > _HERE).order_by(_TABLE.c.committed_at, _TABLE.c.sha).limit(1)
_FORGET = (
    schema.changes.delete().where(schema.changes.c.point_id == sa.bindparam("id")),
    schema.renames.delete().where(
        schema.renames.c.series_id == sa.bindparam("of_series"), schema.renames.c.point_id == sa.bindparam("id")
    ),
)
_STATUS_OF = tuple(map(status_of, range(STATUS_BYTES)))
_NEW_RENAMES = schema.renames.insert()
_NEW_CHANGES = "INSERT INTO nightjar_changes (series_id, ordinal, point_id, before, after) VALUES (?, ?, ?, ?, ?)"


def find(connection: sa.Connection, known: SuiteNames, suite: SuiteRow, suite_name: str, target: int) -> Series:
    """Return the series of a suite on a target, created if missing."""
    values = {"suite_id": suite.id, "target_id": target}
    found = connection.execute(_FIND, values).scalar()
    if found is None:
        found = connection.execute(schema.series.insert().values(values).returning(schema.series.c.id)).scalar_one()
    return Series(found, suite, suite_name, target, known)


def place(connection: sa.Connection, series: Series, facts: Facts, statuses: bytes, find_renames: Renames) -> bool:
    """Write a point and link it with its neighbors; return whether it has changed.

    `statuses` is its merged status column.
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
    # Counted without the commit before: only `new` and `fixed` depend on that, and `counted` stores `new` below.
    values |= counted.of_tests(count_cell(None, statuses) if facts.linked else None)
    renamed = False
    # Out of its old place first: the admission may now have another time, which is the order of the series.
    if row is not None and row["linked"]:
        renamed = _unlink(connection, series, row, find_renames)
    if row is None:
        number = connection.execute(_NEW_POINT, values | key).scalar_one()
    else:
        number = row["id"]
        connection.execute(_TABLE.update().filter_by(id=number).values(values))
    if facts.linked:
        here: Point = values | key | {"id": number}
        before, after = (neighbor(connection, here, before=side) for side in (True, False))
        known = {facts.sha: statuses}
        renamed |= _compare(connection, series, before, here, find_renames, known, is_new=row is None)
        renamed |= _compare(connection, series, here, after, find_renames, known)
    if facts.linked or (row is not None and row["linked"]):
        newest = number if facts.linked and after is None else None
        counted.count_new(connection, series.known, series.id, (facts.committed_at, facts.sha), newest, renamed=renamed)
    return changed


def neighbor(connection: sa.Connection, row: Point, *, before: bool) -> Point | None:
    """Return the linked point before or after one."""
    here = {name: row[name] for name in ("series_id", "committed_at", "sha")}
    return connection.execute(_BEFORE if before else _AFTER, here).mappings().first()


def _unlink(connection: sa.Connection, series: Series, row: Point, find_renames: Renames) -> bool:
    """Remove a point from the series; return whether a rename was found or removed."""
    connection.execute(_TABLE.update().filter_by(id=row["id"]).values(linked=False))
    forgotten = _forget(connection, row)
    before, after = (neighbor(connection, row, before=side) for side in (True, False))
    return _compare(connection, series, before, after, find_renames, {}) or forgotten


def _forget(connection: sa.Connection, row: Point) -> bool:
    """Remove the differences and renames of a point; return whether there were renames."""
    changes, renames = _FORGET
    connection.execute(changes, {"id": row["id"]})
    return connection.execute(renames, {"id": row["id"], "of_series": row["series_id"]}).rowcount > 0


def _compare(
    connection: sa.Connection,
    series: Series,
    before: Point | None,
    after: Point | None,
    find_renames: Renames,
    known: Mapping[str, bytes],
    *,
    is_new: bool = False,
) -> bool:
    """Store the differences from one point to the next; the first point of a series has none.

    `known` are status columns that need not be read again. With `is_new` there are no rows to replace. Return whether a
    rename was found or removed.
    """
    if after is None:
        return False
    forgotten = not is_new and _forget(connection, after)
    if before is None:
        return forgotten
    columns = _columns(connection, series, (before["sha"], after["sha"]), known)
    # The later column may be longer, because the suite has had more names since, or shorter.
    then, now = (column.ljust(max(map(len, columns)), bytes((ABSENT,))) for column in columns)
    changed = list(differences(then, now))
    renamed = _renamed(connection, series, then, now, changed, find_renames)
    removed = set(renamed.values())
    key = {"series_id": series.id, "point_id": after["id"]}
    rows = []
    for ordinal in changed:
        # A renamed test is compared with its old name. If it ended in the same way, neither name needs a row.
        was, ended = then[renamed.get(ordinal, ordinal)], now[ordinal]
        if was != ended and ordinal not in removed:
            rows.append((series.id, ordinal, after["id"], was, ended))
    if rows:
        # By the driver itself: SQLAlchemy takes longer to bind thousands of rows than the database takes to write them.
        is_postgresql = connection.dialect.name == "postgresql"
        connection.exec_driver_sql(_NEW_CHANGES.replace("?", "%s") if is_postgresql else _NEW_CHANGES, rows)
    if renamed:
        connection.execute(_NEW_RENAMES, key | {"pairs": pairs_blob(renamed)})
    return bool(renamed) or forgotten


def _columns(connection: sa.Connection, series: Series, shas: Sequence[str], known: Mapping[str, bytes]) -> list[bytes]:
    """Return the merged status columns of commits."""
    places = [(series.target_id, sha) for sha in shas if sha not in known]
    reported = runs.reported_runs_at(connection, places, series.suite_name)
    read = runs.statuses(connection, [runs.stored(reported.get(place, [])) for place in places])
    columns = {**known, **dict(zip((sha for _, sha in places), read, strict=True))}
    return [columns[sha] for sha in shas]


def _each(of: Sequence[T], places: Iterable[int]) -> Iterable[T]:
    return map(of.__getitem__, places)


def _renamed(
    connection: sa.Connection, series: Series, then: bytes, now: bytes, changed: list[int], find_renames: Renames
) -> dict[int, int]:
    """Return the renamed tests, with their old names."""
    # A rename needs a test that was removed and one that is new.
    if all(then[ordinal] for ordinal in changed) or all(now[ordinal] for ordinal in changed):
        return {}
    name_of = series.known.uncommitted(connection, series.suite)
    removed = [ordinal for ordinal in changed if not now[ordinal]]
    new = [ordinal for ordinal in changed if not then[ordinal]]
    # The search sorts them, so that the numbers that names have here decide nothing.
    missing, added = (
        dict(zip(_each(name_of, places), _each(_STATUS_OF, _each(column, places)), strict=True))
        for column, places in ((then, removed), (now, new))
    )
    pairs = find_renames(missing, added)
    old_place, new_place = dict(zip(missing, removed, strict=True)), dict(zip(added, new, strict=True))
    return {new_place[now_called]: old_place[called] for called, now_called in pairs.items()}
