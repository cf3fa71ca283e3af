"""Find the commits that a commit may be compared with."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from nightjar_formats.model import TargetKey

from bot.results.compare.ancestors import Candidate
from bot.results.store.tables import schema

NEWEST = 100


def baselines(
    connection: sa.Connection, target: TargetKey, suite: str, sha: str, limit: int = NEWEST
) -> list[Candidate]:
    """Return commits of the nightly branch that are not newer than a commit, complete and not infra, newest first.

    Heads of pull requests are left out: with one as the baseline, a failure of the pull request would no longer be new.
    """
    points, point = schema.points, schema.points.alias()
    of_target = (schema.targets.c.lab == target.lab, schema.targets.c.target == target.target)
    of_suite = _of_suite(sa.select(points.c.series_id), target.repository, suite).where(*of_target).scalar_subquery()
    moment = sa.select(sa.func.min(point.c.committed_at)).where(point.c.series_id.in_(of_suite), point.c.sha == sha)
    statement = (
        sa.select(points.c.sha, points.c.committed_at)
        .where(points.c.series_id.in_(of_suite), points.c.sha != sha)
        .where(points.c.linked, points.c.committed_at <= moment.scalar_subquery())
        .order_by(points.c.committed_at.desc(), points.c.sha.desc())
        .limit(limit)
    )
    return [Candidate(row.sha, row.committed_at) for row in connection.execute(statement)]


def _of_suite(statement: sa.Select[Any], repository: str, suite: str) -> sa.Select[Any]:
    joined = schema.points.join(schema.series).join(schema.suites).join(
        schema.targets, schema.series.c.target_id == schema.targets.c.id
    )  # fmt: skip
    return statement.select_from(joined).where(schema.suites.c.repository == repository, schema.suites.c.suite == suite)
