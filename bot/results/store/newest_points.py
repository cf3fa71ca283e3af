"""The newest runs of each suite on each target: what pages about the state of many tests begin with.

However many targets there are, it takes a few statements, which indices answer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from bot.results.model import TargetKey
from bot.results.state import RunState
from bot.results.store import runs, schema
from bot.results.store.names import SuiteRow

Place = tuple[int, str, str]
"""A target's number, a commit, and a suite."""


@dataclass(frozen=True, slots=True)
class SuiteOnTarget:
    """One suite on one target; `series` is the number of its series."""

    series: int
    suite: str
    row: SuiteRow
    about: TargetKey
    target_id: int


@dataclass(frozen=True, slots=True)
class LinkedPoint:
    """A complete run of the nightly branch that says something about the code. `committed_at` is since 1970."""

    id: int
    sha: str
    committed_at: float


def suites_on_targets(
    connection: sa.Connection, repository: str, lab: str | None = None, target: str | None = None
) -> list[SuiteOnTarget]:
    """Return the suites of a repository on each of its targets, or on one, by target and suite."""
    series, targets, suites = schema.series, schema.targets, schema.suites
    joined = suites.join(series, series.c.suite_id == suites.c.id).join(targets, series.c.target_id == targets.c.id)
    wanted = {targets.c.lab: lab, targets.c.target: target}
    statement = (
        sa.select(series.c.id, suites.c.id.label("suite_id"), suites.c.suite, suites.c.names, series.c.target_id)
        .add_columns(targets.c.lab, targets.c.target)
        .select_from(joined)
        .where(suites.c.repository == repository)
        .where(*(column == value for column, value in wanted.items() if value is not None))
        .order_by(targets.c.lab, targets.c.target, suites.c.suite)
    )
    return [
        SuiteOnTarget(
            row.id,
            row.suite,
            SuiteRow(row.suite_id, row.names),
            TargetKey(repository, row.lab, row.target),
            row.target_id,
        )
        for row in connection.execute(statement)
    ]


def newest_points(connection: sa.Connection, series: Collection[int], count: int) -> dict[int, list[LinkedPoint]]:
    """Return the newest linked points of some series, at most `count` of each, the oldest first."""
    table, points = schema.series, schema.points
    other = points.alias()
    oldest = (
        sa.select(other.c.committed_at)
        .where(other.c.series_id == table.c.id, other.c.linked)
        .order_by(other.c.committed_at.desc(), other.c.sha.desc())
        .limit(1)
        .offset(count - 1)
        .correlate(table)
        .scalar_subquery()
    )
    found: dict[int, list[LinkedPoint]] = {}
    numbers = sorted(series)
    for start in range(0, len(numbers), schema.AT_ONCE):
        statement = (
            sa.select(points.c.series_id, points.c.id, points.c.sha, points.c.committed_at)
            .select_from(table.join(points, points.c.series_id == table.c.id))
            .where(table.c.id.in_(numbers[start : start + schema.AT_ONCE]), points.c.linked)
            .where(points.c.committed_at >= sa.func.coalesce(oldest, 0.0))
            .order_by(points.c.series_id, points.c.committed_at, points.c.sha)
        )
        for row in connection.execute(statement):
            found.setdefault(row.series_id, []).append(LinkedPoint(row.id, row.sha, row.committed_at))
    return {number: every[-count:] for number, every in found.items()}


def stored_runs(connection: sa.Connection, places: Iterable[Place]) -> dict[Place, list[runs.Numbered]]:
    """Return the stored runs of suites at commits, in their order."""
    wanted = set(places)
    ordered = sorted({(target, sha) for target, sha, _ in wanted})
    found: dict[Place, list[runs.Numbered]] = {}
    for start in range(0, len(ordered), schema.AT_ONCE):
        reported = runs.reported_runs_at(connection, ordered[start : start + schema.AT_ONCE])
        for (target, sha), numbered in reported.items():
            for number, run in numbered:
                place = (target, sha, run.claims.suite if run.claims else "")
                if place in wanted and run.state is RunState.STORED:
                    found.setdefault(place, []).append((number, run))
    return found


def status_columns(connection: sa.Connection, stored: Mapping[Place, Sequence[runs.Numbered]]) -> dict[Place, bytes]:
    """Return the merged status column of each place."""
    found: dict[Place, bytes] = {}
    every = list(stored)
    for start in range(0, len(every), schema.AT_ONCE):
        places = every[start : start + schema.AT_ONCE]
        groups = [runs.stored(stored[place]) for place in places]
        found |= zip(places, runs.statuses(connection, groups), strict=True)
    return found
