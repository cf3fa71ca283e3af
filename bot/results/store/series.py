"""What became of each test from commit to commit: change segments of the commits on the nightly branch.

A *point* is one suite at one commit on one target. The complete ones on the nightly branch that say something about the
code are linked, by (time of the commit, SHA), and each holds how it differs from the one before: that, and the tests
renamed there, follow from the two alone. So whatever order runs arrive in, the same rows are there in the end, and a
commit that comes late changes its own and those of its successor.
"""

from __future__ import annotations

from dataclasses import dataclass

import sqlalchemy as sa

from bot.results.compare.searching import Renames
from bot.results.store import runs, schema
from bot.results.store.columns import ABSENT, differences, status_of
from bot.results.store.names import SuiteNames, SuiteRow
from bot.results.store.rename_pairs import pairs_blob


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
    """What a point is."""

    sha: str
    committed_at: float
    pull_request: int | None
    mainline: bool
    complete: bool
    infra: str

    @property
    def linked(self) -> bool:
        """Whether it belongs to the series: others would report tests that they never ran, or that a lab broke."""
        return self.mainline and self.complete and not self.infra


def find(connection: sa.Connection, known: SuiteNames, suite: SuiteRow, suite_name: str, target: int) -> Series:
    """Return the series of a suite on a target, made if it is not there."""
    table = schema.series
    values = {"suite_id": suite.id, "target_id": target}
    found = connection.execute(sa.select(table.c.id).filter_by(**values)).scalar()
    if found is None:
        found = connection.execute(table.insert().values(values).returning(table.c.id)).scalar_one()
    return Series(found, suite, suite_name, target, known)


def statuses(connection: sa.Connection, series: Series, sha: str) -> bytes:
    """Return the merged status column of a commit."""
    reported = runs.reported(connection, series.target_id, sha, series.suite_name)
    return runs.statuses(connection, [runs.stored(reported)])[0]


def place(connection: sa.Connection, series: Series, facts: Facts, find_renames: Renames) -> bool:
    """Write a point as it is now, and link it with its neighbours; tell whether it is another than before."""
    table = schema.points
    row = connection.execute(sa.select(table).filter_by(series_id=series.id, sha=facts.sha)).mappings().first()
    values = {
        "committed_at": facts.committed_at,
        "pull_request": facts.pull_request,
        "mainline": facts.mainline,
        "complete": facts.complete,
        "infra": facts.infra,
        "linked": facts.linked,
    }
    changed = row is None or any(row[name] != value for name, value in values.items())
    if row is not None and row["linked"]:
        _unlink(connection, series, row, find_renames)
    if row is None:
        connection.execute(table.insert().values(values | {"series_id": series.id, "sha": facts.sha}))
    else:
        connection.execute(table.update().filter_by(id=row["id"]).values(values))
    if facts.linked:
        row = connection.execute(sa.select(table).filter_by(series_id=series.id, sha=facts.sha)).mappings().one()
        _compare(connection, series, neighbour(connection, row, before=True), row, find_renames)
        _compare(connection, series, row, neighbour(connection, row, before=False), find_renames)
    return changed


def neighbour(connection: sa.Connection, row: sa.RowMapping, *, before: bool) -> sa.RowMapping | None:
    """Return the linked point before or after one."""
    table = schema.points
    position = sa.tuple_(table.c.committed_at, table.c.sha)
    here = sa.tuple_(sa.literal(row["committed_at"], sa.Double), sa.literal(row["sha"], sa.Text))
    ordering = (table.c.committed_at, table.c.sha)
    statement = (
        sa.select(table)
        .filter_by(series_id=row["series_id"])
        .where(table.c.linked, position < here if before else position > here)
        .order_by(*(column.desc() if before else column for column in ordering))
        .limit(1)
    )
    return connection.execute(statement).mappings().first()


def _unlink(connection: sa.Connection, series: Series, row: sa.RowMapping, find_renames: Renames) -> None:
    connection.execute(schema.points.update().filter_by(id=row["id"]).values(linked=False))
    _forget(connection, row)
    before, after = (neighbour(connection, row, before=side) for side in (True, False))
    _compare(connection, series, before, after, find_renames)


def _forget(connection: sa.Connection, row: sa.RowMapping) -> None:
    connection.execute(schema.changes.delete().filter_by(point_id=row["id"]))
    connection.execute(schema.renames.delete().filter_by(series_id=row["series_id"], point_id=row["id"]))


def _compare(
    connection: sa.Connection,
    series: Series,
    before: sa.RowMapping | None,
    after: sa.RowMapping | None,
    find_renames: Renames,
) -> None:
    """Write down what changed from one point to the next; nothing changed at the first of all."""
    if after is None:
        return
    _forget(connection, after)
    if before is None:
        return
    columns = [statuses(connection, series, row["sha"]) for row in (before, after)]
    then, now = (column.ljust(max(map(len, columns)), bytes((ABSENT,))) for column in columns)
    changed = list(differences(then, now))
    renamed = _renamed(connection, series, then, now, changed, find_renames)
    removed = set(renamed.values())
    key = {"series_id": series.id, "point_id": after["id"]}
    rows = []
    for ordinal in changed:
        was, ended = then[renamed.get(ordinal, ordinal)], now[ordinal]
        if was != ended and ordinal not in removed:
            rows.append(key | {"ordinal": ordinal, "before": was, "after": ended})
    if rows:
        connection.execute(schema.changes.insert(), rows)
    if renamed:
        connection.execute(schema.renames.insert().values(key | {"pairs": pairs_blob(renamed)}))


def _renamed(
    connection: sa.Connection, series: Series, then: bytes, now: bytes, changed: list[int], find_renames: Renames
) -> dict[int, int]:
    """Return the tests that came under a new name, and what they were before."""
    if all(then[ordinal] for ordinal in changed) or all(now[ordinal] for ordinal in changed):
        return {}
    name_of = series.known.uncommitted(connection, series.suite)
    removed = {name_of[ordinal]: ordinal for ordinal in changed if now[ordinal] == ABSENT}
    new = {name_of[ordinal]: ordinal for ordinal in changed if then[ordinal] == ABSENT}
    # Sorted, so that the numbers that names have here decide nothing.
    missing = {name: status_of(then[removed[name]]) for name in sorted(removed)}
    added = {name: status_of(now[new[name]]) for name in sorted(new)}
    pairs = find_renames(missing, added)
    return {new[now_called]: removed[called] for called, now_called in pairs.items()}
