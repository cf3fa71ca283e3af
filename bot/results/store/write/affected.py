"""Find the check runs that a commit changes: those of commits that may be compared with it, or that lack its suite."""

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
"""Whether a target has results of a later commit. Most commits are the newest of their target, and change no other."""


def by(connection: sa.Connection, repository: str, series: Series, facts: Facts) -> set[str]:
    """Return the later commits whose check runs may have to say something else because of this one.

    There are none if this one is not on the nightly branch. Otherwise it may be one of their nearest ancestors, unless
    enough nearer ones are known; or it is the one whose suites the next commit is expected to have.
    """
    here = {"target_id": series.target_id, "committed_at": facts.committed_at, "sha": facts.sha}
    if not facts.mainline or connection.execute(_LATER, here).first() is None:
        return set()
    return _compared(connection, repository, series, facts) | _next(connection, series, facts)


def _compared(connection: sa.Connection, repository: str, series: Series, facts: Facts) -> set[str]:
    """Return the later commits of the series that have fewer known nearer ancestors than they are compared with."""
    later, nearer, known = schema.points, schema.points.alias(), schema.ancestry
    number = (
        sa.select(sa.func.count())
        .select_from(known.join(nearer, sa.and_(nearer.c.series_id == series.id, nearer.c.sha == known.c.other)))
        .where(known.c.repository == repository, known.c.sha == later.c.sha, known.c.is_ancestor)
        .where(nearer.c.linked, nearer.c.committed_at > facts.committed_at)
        .correlate(later)
        .scalar_subquery()
    )
    statement = sa.select(later.c.sha).where(
        later.c.series_id == series.id,
        later.c.committed_at >= facts.committed_at,
        later.c.sha != facts.sha,
        # A nightly commit is compared with as many ancestors as confirm a failure, a pull request with one.
        number < sa.case((later.c.mainline, CONFIRMED_RUNS), else_=1),
    )
    return set(connection.execute(statement).scalars())


def _next(connection: sa.Connection, series: Series, facts: Facts) -> set[str]:
    """Return the next commits of the target on the nightly branch; there are several if they have the same time."""
    points, every = schema.points, schema.series
    of_target = (every.c.target_id == series.target_id, points.c.mainline, points.c.sha != facts.sha)
    moment = connection.execute(
        sa.select(sa.func.min(points.c.committed_at))
        .select_from(points.join(every))
        .where(*of_target, points.c.committed_at > facts.committed_at)
    ).scalar()
    statement = sa.select(points.c.sha).select_from(points.join(every))
    statement = statement.where(*of_target, points.c.committed_at.in_([facts.committed_at, moment]))
    return set(connection.execute(statement).scalars())
