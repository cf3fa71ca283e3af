"""Read the newest points of each suite on each target, and the columns of their runs.

However many targets there are, it takes a few statements, which indices answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from nightjar_formats.model import TargetKey

from bot.results.store.tables import schema
from bot.results.store.tables.names import SuiteRow
from bot.results.store.tables.runs import Place, columns_at

Position = tuple[float, str]
"""The position of a commit in its series."""


@dataclass(frozen=True, slots=True)
class SuiteOnTarget:
    """One suite on one target; `series` is the number of its series, and `row` has the number of its names."""

    series: int
    name: str
    row: SuiteRow
    target: TargetKey
    target_id: int

    def place_at(self, sha: str) -> Place:
        """Return where the runs of the suite at a commit are found."""
        return self.target_id, sha, self.name


class LinkedPoint(NamedTuple):
    """A complete run of the nightly branch with usable results. `committed_at` is in seconds since 1970.

    `failed` is how many tests failed, explained failures included, `passed` how many passed; None if not stored.
    """

    id: int
    sha: str
    committed_at: float
    failed: int | None = None
    passed: int | None = None


def suites_on_targets(
    connection: sa.Connection,
    repository: str,
    lab: str | None = None,
    target: str | None = None,
    suite: str | None = None,
) -> list[SuiteOnTarget]:
    """Return the suites of a repository on each of its targets, by target and suite; None matches all."""
    statement, parameters = _suites_of(repository, lab, target, suite)
    return [
        SuiteOnTarget(
            row.id,
            row.suite,
            SuiteRow(row.suite_id, row.names),
            TargetKey(repository, row.lab, row.target),
            row.target_id,
        )
        for row in connection.execute(statement, parameters)
    ]


_SUITES_ON_TARGETS = (
    sa.select(schema.series.c.id, schema.suites.c.id.label("suite_id"), schema.suites.c.suite, schema.suites.c.names)
    .add_columns(schema.series.c.target_id, schema.targets.c.lab, schema.targets.c.target)
    .select_from(
        schema.suites.join(schema.series, schema.series.c.suite_id == schema.suites.c.id).join(
            schema.targets, schema.series.c.target_id == schema.targets.c.id
        )
    )
    .order_by(schema.targets.c.lab, schema.targets.c.target, schema.suites.c.suite)
)


@cache
def _suites_statement(filters: tuple[str, ...]) -> sa.Select[Any]:
    """Return the statement of `_suites_of`; `filters` are the parameters that are not None."""
    columns = {"lab": schema.targets.c.lab, "target": schema.targets.c.target, "suite": schema.suites.c.suite}
    return _SUITES_ON_TARGETS.where(
        schema.suites.c.repository == sa.bindparam("repository"),
        *(columns[name] == sa.bindparam(name) for name in filters),
    )


def _suites_of(
    repository: str, lab: str | None, target: str | None, suite: str | None
) -> tuple[sa.Select[Any], dict[str, str]]:
    """Return the statement for the suites of a repository on each of its targets, and its parameters."""
    named = {"lab": lab, "target": target, "suite": suite}
    filters = {name: value for name, value in named.items() if value is not None}
    return _suites_statement(tuple(filters)), {"repository": repository, **filters}


def select_suites_on_targets(
    repository: str, lab: str | None = None, target: str | None = None, suite: str | None = None
) -> sa.Select[Any]:
    """Return a statement for the suites of a repository on each of its targets; None matches all."""
    statement, parameters = _suites_of(repository, lab, target, suite)
    return statement.params(parameters)


def first_on_nightly() -> sa.ScalarSelect[float]:
    """Return a subquery for a statement about series: the time of the first commit of each on the nightly branch."""
    points = schema.points
    return (
        sa.select(points.c.committed_at)
        .where(points.c.series_id == schema.series.c.id, points.c.mainline)
        .order_by(points.c.committed_at, points.c.sha)
        .limit(1)
        .correlate(schema.series)
        .scalar_subquery()
    )


def _newest(*, until: bool) -> sa.Select[Any]:
    """Return the statement of `newest_points`, with a last commit or without one."""
    table, points = schema.series, schema.points
    newer, last = points.alias(), points.alias()

    def up_to_last(candidates: sa.FromClause) -> sa.ColumnElement[bool]:
        if not until:
            return sa.true()
        return sa.tuple_(candidates.c.committed_at, candidates.c.sha) <= sa.tuple_(last.c.committed_at, last.c.sha)

    joined = table.join(points, points.c.series_id == table.c.id)
    if until:
        joined = joined.join(last, sa.and_(last.c.series_id == table.c.id, last.c.sha == sa.bindparam("until")))
    # One subquery per series reads only the end of the index `nightjar_points_order`. To number the points of each
    # series (`row_number`), a database would have to read all of them.
    oldest = (
        sa.select(newer.c.committed_at)
        .where(newer.c.series_id == table.c.id, newer.c.linked, up_to_last(newer))
        .order_by(newer.c.committed_at.desc(), newer.c.sha.desc())
        .limit(1)
        .offset(sa.bindparam("others"))
        .correlate(table, last)
        .scalar_subquery()
    )
    return (
        sa.select(points.c.series_id, points.c.id, points.c.sha, points.c.committed_at, points.c.failed)
        .add_columns(points.c.passed)
        .select_from(joined)
        .where(table.c.id.in_(sa.bindparam("numbers", expanding=True)), points.c.linked, up_to_last(points))
        # `oldest` is NULL for a series with fewer points: all of them are read.
        .where(points.c.committed_at >= sa.func.coalesce(oldest, 0.0))
        .order_by(points.c.series_id, points.c.committed_at, points.c.sha)
    )


# Made once, because making the statements takes longer than answering them.
_NEWEST, _NEWEST_UNTIL = _newest(until=False), _newest(until=True)


def newest_points(
    connection: sa.Connection, series: Collection[int], count: int, until: str = ""
) -> dict[int, list[LinkedPoint]]:
    """Return the newest linked points of some series, at most `count` of each, oldest first.

    With `until`, only those up to that commit, of the series that have it.
    """
    newest: dict[int, list[LinkedPoint]] = {}
    numbers = sorted(series)
    parameters: dict[str, Any] = {"others": count - 1} | ({"until": until} if until else {})
    for chunk in schema.in_chunks(numbers):
        for number, *point in connection.execute(
            _NEWEST_UNTIL if until else _NEWEST, {**parameters, "numbers": chunk}
        ).all():
            newest.setdefault(number, []).append(LinkedPoint._make(point))
    # More than `count` are found if others have the same time as the oldest one.
    return {number: linked[-count:] for number, linked in newest.items()}


def newest_columns(connection: sa.Connection, suites: Iterable[SuiteOnTarget]) -> dict[int, bytes]:
    """Return the status column of the newest run of each suite on each target, by series."""
    by_series = {suite.series: suite for suite in suites}
    places = {
        number: by_series[number].place_at(points[-1].sha)
        for number, points in newest_points(connection, by_series, 1).items()
    }
    columns = columns_at(connection, places.values())
    return {number: columns[place] for number, place in places.items() if place in columns}
