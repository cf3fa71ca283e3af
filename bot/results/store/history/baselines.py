"""Find the commits that a commit may be compared with."""

from __future__ import annotations

import sqlalchemy as sa
from nightjar_formats.model import TargetKey

from bot.results.compare.ancestors import Candidate
from bot.results.store.tables import schema

NEWEST = 100

# Made once, because making the statement takes longer than answering it.
_POINTS, _POINT = schema.points, schema.points.alias()
_OF_SUITE = (
    sa.select(_POINTS.c.series_id)
    .select_from(
        _POINTS.join(schema.series)
        .join(schema.suites)
        .join(schema.targets, schema.series.c.target_id == schema.targets.c.id)
    )
    .where(schema.suites.c.repository == sa.bindparam("repository"), schema.suites.c.suite == sa.bindparam("suite"))
    .where(schema.targets.c.lab == sa.bindparam("lab"), schema.targets.c.target == sa.bindparam("target"))
    .scalar_subquery()
)
_MOMENT = (
    sa.select(sa.func.min(_POINT.c.committed_at))
    .where(_POINT.c.series_id.in_(_OF_SUITE), _POINT.c.sha == sa.bindparam("sha"))
    .scalar_subquery()
)
_BASELINES = (
    sa.select(_POINTS.c.sha, _POINTS.c.committed_at)
    .where(_POINTS.c.series_id.in_(_OF_SUITE), _POINTS.c.sha != sa.bindparam("sha"))
    .where(_POINTS.c.linked, _POINTS.c.committed_at <= _MOMENT)
    .order_by(_POINTS.c.committed_at.desc(), _POINTS.c.sha.desc())
    .limit(sa.bindparam("most"))
)


def baselines(
    connection: sa.Connection, target: TargetKey, suite: str, sha: str, limit: int = NEWEST
) -> list[Candidate]:
    """Return commits of the nightly branch that are not newer than a commit, complete and not infra, newest first.

    Heads of pull requests are left out: with one as the baseline, a failure of the pull request would no longer be new.
    """
    suite_on_target = {"repository": target.repository, "lab": target.lab, "target": target.target, "suite": suite}
    rows = connection.execute(_BASELINES, suite_on_target | {"sha": sha, "most": limit})
    return [Candidate(*row) for row in rows]
