"""Store how each test changed from commit to commit on the nightly branch, and which check runs that affects.

A *point* is one suite at one commit on one target. Complete points of the nightly branch that are not infra are linked,
in the order of (time of the commit, SHA). Each stores its differences from the previous point, and the tests that were
renamed between the two; both depend on these two points only. So the rows don't depend on the order in which runs
arrive, and a late commit changes only its own rows and those of its successor.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, STATUS_BYTES, differences, merged, status_of
from nightjar_formats.model import SeenTest

from bot.results.compare.diff import CONFIRMED_RUNS
from bot.results.compare.searching import Renames
from bot.results.state import Run
from bot.results.store.grid import stored_counts
from bot.results.store.tables import runs, schema
from bot.results.store.tables.blobs import RunColumns
from bot.results.store.tables.cells import count_cell
from bot.results.store.tables.combine import has_evidence, verdicts
from bot.results.store.tables.names import SuiteRow, uncommitted_names
from bot.results.store.tables.names import find as find_suite
from bot.results.store.tables.rename_pairs import pairs_blob
from bot.results.store.write import pending_checks


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


Infra = Callable[[Mapping[str, SeenTest]], str]
"""Returns why the results of a suite are unusable, or an empty text."""


class PointRules(NamedTuple):
    """What decides about points: which results are unusable, and which tests were renamed."""

    infra: Infra
    renames: Renames


T = TypeVar("T")
Point = sa.RowMapping | Mapping[str, Any]
"""A row of `nightjar_points`."""

_LATER = (
    sa.select(schema.points.c.id)
    .select_from(schema.points.join(schema.series))
    .where(schema.series.c.target_id == sa.bindparam("target_id"), schema.points.c.sha != sa.bindparam("sha"))
    .where(schema.points.c.committed_at >= sa.bindparam("committed_at"))
    .limit(1)
)
"""Finds a later commit of a target with results. Most commits are the newest of their target, and affect no other."""

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


def follow_run(
    connection: sa.Connection,
    target_id: int,
    old_run: Run | None,
    run: Run,
    rules: PointRules,
    moment: float,
    columns: Mapping[int, RunColumns] = MappingProxyType({}),
    suites: Mapping[str, SuiteRow] = MappingProxyType({}),
    *,
    has_changed: bool = True,
) -> None:
    """Update everything that follows from a run: the points of its suites, and which check runs are pending.

    `columns` has columns that need not be read, by the number of their run, and `suites` rows of suites by name.
    Without `has_changed`, the same results were ingested again: a check run changes only if the rules for points
    have changed. `moment` is now, in seconds since 1970.
    """
    touched = set()
    reported_suites = {
        reported_run.claims.suite
        for reported_run in (old_run, run)
        if reported_run and reported_run.claims and reported_run.state in runs.REPORTED
    }
    for suite_name in sorted(reported_suites):
        if has_changed:
            touched.add(run.key.sha)
        suite = suites.get(suite_name) or find_suite(connection, run.key.repository, suite_name, make=True)
        assert suite is not None
        series = find(connection, suite, suite_name, target_id)
        facts, statuses = _point_facts(connection, series, run.key.sha, columns, rules.infra)
        if facts is not None and (_place(connection, series, facts, statuses, rules.renames) or has_changed):
            touched |= {run.key.sha, *_affected_commits(connection, run.key.repository, series, facts)}
    pending_checks.touch(connection, target_id, touched, moment)


def _point_facts(
    connection: sa.Connection, series: Series, sha: str, already_read: Mapping[int, RunColumns], find_infra: Infra
) -> tuple[Facts | None, bytes]:
    """Return the facts of a commit's point (None if none of its runs was admitted) and its merged status column.

    `already_read` has the results of runs that need not be read, by the number of the run.
    """
    reported = runs.reported(connection, series.target_id, sha, series.suite_name)
    admission = reported.admission
    if admission is None:
        return None, b""
    columns = runs.columns(connection, reported.stored, already_read)
    statuses, complete, infra = merged([run.statuses for run in columns]), reported.complete, ""
    # An incomplete point stays outside the series anyway. Most complete ones have evidence, which is faster to see.
    if complete and not has_evidence(columns, statuses):
        seen, _ = verdicts(uncommitted_names(connection, series.suite), columns)
        infra = find_infra(seen)
    facts = Facts(sha, admission.committed_at, admission.pull_request, admission.mainline, complete, infra)
    return facts, statuses


def _place(connection: sa.Connection, series: Series, facts: Facts, statuses: bytes, find_renames: Renames) -> bool:
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
    unread = [sha for sha in shas if sha not in already_read]
    statuses = runs.suite_columns(connection, series.target_id, series.suite_name, unread)
    columns = {**already_read, **dict(zip(unread, statuses, strict=True))}
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
    name_of = uncommitted_names(connection, series.suite).ordered
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


def _affected_commits(connection: sa.Connection, repository: str, series: Series, facts: Facts) -> set[str]:
    """Return the later commits whose check runs may change because of the results of this one.

    There are none if this commit is not on the nightly branch. Otherwise, it may be one of the nearest ancestors of a
    later commit, unless enough nearer ones are known; and the next commit is expected to have its suites.
    """
    parameters = {"target_id": series.target_id, "committed_at": facts.committed_at, "sha": facts.sha}
    if not facts.mainline or connection.execute(_LATER, parameters).first() is None:
        return set()
    return _compared_commits(connection, repository, series, facts) | _next_commits(connection, series, facts)


def _compared_commits(connection: sa.Connection, repository: str, series: Series, facts: Facts) -> set[str]:
    """Return the later commits of the series that have fewer known nearer ancestors than they are compared with."""
    later, nearer, relations = schema.points, schema.points.alias(), schema.ancestry
    nearer_ancestors = (
        sa.select(sa.func.count())
        .select_from(
            relations.join(nearer, sa.and_(nearer.c.series_id == series.id, nearer.c.sha == relations.c.other))
        )
        .where(relations.c.repository == repository, relations.c.sha == later.c.sha, relations.c.is_ancestor)
        .where(nearer.c.linked, nearer.c.committed_at > facts.committed_at)
        .correlate(later)
        .scalar_subquery()
    )
    statement = sa.select(later.c.sha).where(
        later.c.series_id == series.id,
        later.c.committed_at >= facts.committed_at,
        later.c.sha != facts.sha,
        # A nightly commit is compared with as many ancestors as confirm a failure, a pull request with one.
        nearer_ancestors < sa.case((later.c.mainline, CONFIRMED_RUNS), else_=1),
    )
    return set(connection.execute(statement).scalars())


def _next_commits(connection: sa.Connection, series: Series, facts: Facts) -> set[str]:
    """Return the next commits of the target on the nightly branch; there are several if they have the same time."""
    points, series_table = schema.points, schema.series
    of_target = (series_table.c.target_id == series.target_id, points.c.mainline, points.c.sha != facts.sha)
    moment = connection.execute(
        sa.select(sa.func.min(points.c.committed_at))
        .select_from(points.join(series_table))
        .where(*of_target, points.c.committed_at > facts.committed_at)
    ).scalar()
    statement = sa.select(points.c.sha).select_from(points.join(series_table))
    statement = statement.where(*of_target, points.c.committed_at.in_([facts.committed_at, moment]))
    return set(connection.execute(statement).scalars())
