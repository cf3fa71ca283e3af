"""Find the commits that a commit may be compared with, what changed between two, and the tests that change most."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from nightjar_formats.columns import SEEN, STATUS_BYTES, at, differences, is_flip
from nightjar_formats.items import first_of
from nightjar_formats.model import SeenTest, TargetKey

from bot.core.aliases import Aliases
from bot.results.compare.ancestors import Candidate
from bot.results.store.tables import names, runs, schema
from bot.results.store.tables.names import SuiteNames
from bot.results.store.tables.rename_pairs import renames_of

# All pairs of status bytes, so that a statement can count flips by the columns of `changes`.
FLIPS = [(old, new) for old in range(STATUS_BYTES) for new in range(STATUS_BYTES) if is_flip(old, new)]


ResultChange = tuple[SeenTest | None, SeenTest | None]
"""The results of a test before and after, without reasons; None if it was absent."""


@dataclass(frozen=True, slots=True)
class FlipCount:
    """A test, and how often it changed between good and bad, or became flaky."""

    test_id: str
    flips: int


def baselines(connection: sa.Connection, target: TargetKey, suite: str, sha: str, limit: int) -> list[Candidate]:
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


def changed(
    connection: sa.Connection, suite_names: SuiteNames, target: TargetKey, suite: str, shas: tuple[str, str]
) -> dict[str, ResultChange]:
    """Return the tests of a suite with different results at two commits."""
    row = names.find(connection, target.repository, suite)
    target_id = runs.target_id(connection, target)
    if row is None or target_id is None:
        return {}
    places = [(target_id, sha) for sha in shas]
    reported = runs.reported_runs_at(connection, places, suite)
    old_column, new_column = runs.statuses(connection, [runs.stored(reported.get(place, [])) for place in places])
    name_of = suite_names.all(connection, row)
    return {
        name_of[ordinal]: (_status(at(old_column, ordinal)), _status(at(new_column, ordinal)))
        for ordinal in differences(old_column, new_column)
    }


def _status(byte: int) -> SeenTest | None:
    return SEEN[byte] if byte else None


def flakiest(
    connection: sa.Connection,
    suite_names: SuiteNames,
    target: TargetKey,
    suite: str,
    limit: int,
    since: float,
    aliases: Aliases,
) -> list[FlipCount]:
    """Return the tests of a suite with the most flips, sorted by flips and name."""
    row = names.find(connection, target.repository, suite)
    target_id = runs.target_id(connection, target)
    if row is None or target_id is None:
        return []
    statement = sa.select(schema.series.c.id).filter_by(suite_id=row.id, target_id=target_id)
    series = connection.execute(statement).scalar()
    if series is None:
        return []
    counts = _flips(connection, series, since)
    for old, new in _latest_names(connection, series, counts):
        counts[new] += counts.pop(old, 0)
    name_of = suite_names.all(connection, row)
    _join_aliases(counts, name_of, aliases)
    # Names break ties, and are read only for tests that may be returned.
    highest = sorted(counts.values(), reverse=True)[:limit]
    likely = [ordinal for ordinal, count in counts.items() if count >= highest[-1]] if highest else []
    ranked = sorted((FlipCount(name_of[ordinal], counts[ordinal]) for ordinal in likely), key=lambda test: test.test_id)
    return sorted(ranked, key=lambda test: -test.flips)[:limit]


def _join_aliases(counts: Counter[int], name_of: Sequence[str], aliases: Aliases) -> None:
    """Count the flips of a test under the newest of its names that the suite has."""
    renamed = {ordinal: chain for ordinal in counts if len(chain := aliases.chain(name_of[ordinal])) > 1}
    if not renamed:
        return
    ordinal_of = {name: ordinal for ordinal, name in enumerate(name_of)}
    for ordinal, chain in renamed.items():
        newest = first_of(ordinal_of[name] for name in reversed(chain) if name in ordinal_of)
        if newest != ordinal:
            counts[newest] += counts.pop(ordinal)


def _flips(connection: sa.Connection, series: int, since: float) -> Counter[int]:
    changes, points = schema.changes, schema.points
    statement = sa.select(changes.c.ordinal, sa.func.count().label("flips")).where(
        changes.c.series_id == series, sa.tuple_(changes.c.before, changes.c.after).in_(FLIPS)
    )
    if since:
        statement = statement.join(points).where(points.c.committed_at >= since)
    return Counter({row.ordinal: row.flips for row in connection.execute(statement.group_by(changes.c.ordinal)).all()})


def _latest_names(connection: sa.Connection, series: int, counts: Counter[int]) -> list[tuple[int, int]]:
    """Return the renames of tests with flips, in the order of the commits."""
    affected = set(counts)
    latest = []
    for _, _, pairs in renames_of(connection, [series]):
        renamed = [(old, new) for old in sorted(affected) if (new := pairs.new_of(old)) is not None]
        affected.update(new for _, new in renamed)
        latest += renamed
    return latest
