"""Query the series of a suite: the commits to compare with, and the tests that change most."""

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
FLIPS = [(before, after) for before in range(STATUS_BYTES) for after in range(STATUS_BYTES) if is_flip(before, after)]


Change = tuple[SeenTest | None, SeenTest | None]
"""The results of a test before and after, without reasons; None if it was absent."""


@dataclass(frozen=True, slots=True)
class Flaky:
    """A test, and how often it changed between good and bad, or became flaky."""

    test_id: str
    flips: int


def baselines(connection: sa.Connection, about: TargetKey, suite: str, sha: str, limit: int) -> list[Candidate]:
    """Return commits of the nightly branch that are not newer than a commit, complete and not infra, newest first.

    Heads of pull requests are left out: with one as the baseline, a failure of the pull request would no longer be new.
    """
    points, own = schema.points, schema.points.alias()
    of_target = (schema.targets.c.lab == about.lab, schema.targets.c.target == about.target)
    of_suite = _of_suite(sa.select(points.c.series_id), about.repository, suite).where(*of_target).scalar_subquery()
    moment = sa.select(sa.func.min(own.c.committed_at)).where(own.c.series_id.in_(of_suite), own.c.sha == sha)
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
    connection: sa.Connection, known: SuiteNames, about: TargetKey, suite: str, shas: tuple[str, str]
) -> dict[str, Change]:
    """Return the tests of a suite with different results at two commits."""
    found = names.find(connection, about.repository, suite)
    target = runs.target_id(connection, about)
    if found is None or target is None:
        return {}
    places = [(target, sha) for sha in shas]
    reported = runs.reported_runs_at(connection, places, suite)
    before, after = runs.statuses(connection, [runs.stored(reported.get(place, [])) for place in places])
    name_of = known.all(connection, found)
    return {
        name_of[ordinal]: (_status(at(before, ordinal)), _status(at(after, ordinal)))
        for ordinal in differences(before, after)
    }


def _status(byte: int) -> SeenTest | None:
    return SEEN[byte] if byte else None


def flakiest(
    connection: sa.Connection,
    known: SuiteNames,
    about: TargetKey,
    suite: str,
    limit: int,
    since: float,
    aliases: Aliases,
) -> list[Flaky]:
    """Return the tests of a suite with the most flips; equal ones by name."""
    found = names.find(connection, about.repository, suite)
    target = runs.target_id(connection, about)
    if found is None or target is None:
        return []
    statement = sa.select(schema.series.c.id).filter_by(suite_id=found.id, target_id=target)
    series = connection.execute(statement).scalar()
    if series is None:
        return []
    counts = _flips(connection, series, since)
    for old, new in _latest_names(connection, series, counts):
        counts[new] += counts.pop(old, 0)
    name_of = known.all(connection, found)
    _join_aliases(counts, name_of, aliases)
    # Names break ties, and are read only for tests that may be returned.
    enough = sorted(counts.values(), reverse=True)[:limit]
    wanted = [ordinal for ordinal, count in counts.items() if count >= enough[-1]] if enough else []
    ranked = sorted((Flaky(name_of[ordinal], counts[ordinal]) for ordinal in wanted), key=lambda one: one.test_id)
    return sorted(ranked, key=lambda one: -one.flips)[:limit]


def _join_aliases(counts: Counter[int], name_of: Sequence[str], aliases: Aliases) -> None:
    """Count the flips of a test under the newest of its names that the suite has."""
    renamed = {ordinal: chain for ordinal in counts if len(chain := aliases.chain(name_of[ordinal])) > 1}
    if not renamed:
        return
    place_of = {name: place for place, name in enumerate(name_of)}
    for ordinal, chain in renamed.items():
        newest = first_of(place_of[name] for name in reversed(chain) if name in place_of)
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
    concerned = set(counts)
    found = []
    for _, _, pairs in renames_of(connection, [series]):
        renamed = [(old, new) for old in sorted(concerned) if (new := pairs.new_of(old)) is not None]
        concerned.update(new for _, new in renamed)
        found += renamed
    return found
