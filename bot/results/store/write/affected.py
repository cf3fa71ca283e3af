"""Find the commits whose check runs a commit affects, because they may be compared with it or lack its suite."""

from __future__ import annotations

import sqlalchemy as sa

from bot.results.compare.diff import CONFIRMED_RUNS
from bot.results.store.tables import schema
from bot.results.store.write.series import Facts, Series

_LATER = (
    sa.select(schema.points.c.id)
    .select_from(schema.points.join(schema.series))
    .where(schema.series.c.target_id == sa.bindparam("target_id"), schema.points.c.sha != sa.bindparam("sha"))
    .where(schema.points.c.committed_at >= sa.bindparam("committed_at"))
    .limit(1)
)
"""Finds a later commit of a target with results. Most commits are the newest of their target, and affect no other."""


def affected_commits(connection: sa.Connection, repository: str, series: Series, facts: Facts) -> set[str]:
    """Return the later commits whose check runs may change because of the results of this one.

    There are none if this commit is not on the nightly branch. Otherwise, it may be one of the nearest ancestors of a
    later commit, unless enough nearer ones are known; and the next commit is expected to have its suites.
    """
    parameters = {"target_id": series.target_id, "committed_at": facts.committed_at, "sha": facts.sha}
    if not facts.mainline or connection.execute(_LATER, parameters).first() is None:
        return set()
    return _compared(connection, repository, series, facts) | _next(connection, series, facts)


def _compared(connection: sa.Connection, repository: str, series: Series, facts: Facts) -> set[str]:
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


def _next(connection: sa.Connection, series: Series, facts: Facts) -> set[str]:
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
