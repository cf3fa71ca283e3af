"""Find the commits of a target that have results and can be compared."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from nightjar_formats.model import TargetKey

from bot.results.state import Run
from bot.results.store.tables import runs, schema
from bot.results.store.tables.points import suites_on_targets

MOST_LISTED = 60
MOST_RUNS = 100


@dataclass(frozen=True, slots=True)
class CommitWithResults:
    """A commit with results of a target; `committed_at` is in seconds since 1970."""

    sha: str
    committed_at: float
    mainline: bool
    pull_request: int | None


def newest_commits_with_results(
    connection: sa.Connection, target: TargetKey, limit: int = MOST_LISTED
) -> list[CommitWithResults]:
    """Return the newest commits of a target, newest first, including those of pull requests."""
    points, table = schema.points, schema.series
    series = [suite.series for suite in suites_on_targets(connection, target.repository, target.lab, target.target)]
    newer = points.alias()
    # One subquery per series, which reads only the end of an index, as in `newest_points`.
    oldest = (
        sa.select(newer.c.committed_at)
        .where(newer.c.series_id == table.c.id)
        .order_by(newer.c.committed_at.desc(), newer.c.sha.desc())
        .limit(1)
        .offset(limit - 1)
        .correlate(table)
        .scalar_subquery()
    )
    statement = (
        sa.select(points)
        .select_from(table.join(points, points.c.series_id == table.c.id))
        .where(table.c.id.in_(series), points.c.committed_at >= sa.func.coalesce(oldest, 0.0))
    )
    return _merged(connection.execute(statement).mappings().all())[:limit]


def commit_with_results(connection: sa.Connection, target: TargetKey, sha: str) -> CommitWithResults | None:
    """Return a commit of a target; None if it has no results."""
    points = schema.points
    series = [suite.series for suite in suites_on_targets(connection, target.repository, target.lab, target.target)]
    statement = sa.select(points).where(points.c.series_id.in_(series), points.c.sha == sha)
    return next(iter(_merged(connection.execute(statement).mappings().all())), None)


def commit_times(connection: sa.Connection, target: TargetKey, shas: Collection[str]) -> dict[str, float]:
    """Return when commits of a target were committed, in seconds since 1970; those without results are left out."""
    points = schema.points
    series = [suite.series for suite in suites_on_targets(connection, target.repository, target.lab, target.target)]
    statement = sa.select(points.c.sha, points.c.committed_at).where(
        points.c.series_id.in_(series), points.c.sha.in_(shas)
    )
    return {row.sha: row.committed_at for row in connection.execute(statement)}


def suites_with_results(connection: sa.Connection, target: TargetKey, sha: str) -> list[str]:
    """Return the suites of a target with results at a commit."""
    points = schema.points
    suites = suites_on_targets(connection, target.repository, target.lab, target.target)
    numbers = [suite.series for suite in suites]
    statement = sa.select(points.c.series_id).where(points.c.series_id.in_(numbers), points.c.sha == sha)
    with_results = set(connection.execute(statement).scalars())
    return [suite.name for suite in suites if suite.series in with_results]


def runs_of_commit(connection: sa.Connection, target: TargetKey, sha: str, limit: int = MOST_RUNS) -> list[Run]:
    """Return the runs of a commit on a target in any state, those that were received last first."""
    table = schema.runs
    target_id = runs.target_id(connection, target)
    statement = runs.select().where(table.c.target_id == target_id, table.c.sha == sha)
    newest_first = statement.order_by(table.c.received_at.desc(), table.c.id.desc()).limit(limit)
    return [runs.read(row) for row in connection.execute(newest_first).mappings()]


def _merged(rows: Sequence[sa.RowMapping]) -> list[CommitWithResults]:
    """Return the commits of some points, each once: every suite has its own points."""
    commits: dict[str, CommitWithResults] = {}
    for row in rows:
        commits.setdefault(
            row["sha"], CommitWithResults(row["sha"], row["committed_at"], row["mainline"], row["pull_request"])
        )
    return sorted(commits.values(), key=lambda commit: (commit.committed_at, commit.sha), reverse=True)
