"""Read one test over the runs of its suite on a target, and find the targets, suites and commits that have results."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

import sqlalchemy as sa
from nightjar_formats.model import Status, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.store.history import history
from bot.results.store.history.history import Segment, TestHistory
from bot.results.store.tables import names, runs, schema
from bot.results.store.tables.names import all_names, find_ordinal


class LeftOut(StrEnum):
    """Why a run does not belong to the series, so that it neither begins nor ends a failure."""

    NOTHING = ""
    PULL_REQUEST = "pull request"
    INCOMPLETE = "incomplete"
    UNUSABLE = "unusable"


@dataclass(frozen=True, slots=True)
class TimelineRun:
    """One commit of a suite on a target. `status` is None where the test was absent, or the run is left out.

    `name` is what the test was called. `reason` says why results are unusable. `committed_at` is in seconds since 1970.
    """

    sha: str
    committed_at: float
    status: Status | None
    flaky: bool
    name: str
    left_out: LeftOut = LeftOut.NOTHING
    reason: str = ""


def all_targets(connection: sa.Connection) -> list[TargetKey]:
    """Return all targets with anything stored."""
    table = schema.targets
    statement = sa.select(table).order_by(table.c.repository, table.c.lab, table.c.target)
    return [TargetKey(row.repository, row.lab, row.target) for row in connection.execute(statement)]


def commits_starting_with(connection: sa.Connection, target: TargetKey, beginning: str, limit: int) -> list[str]:
    """Return commits of a target whose SHA begins like this, those with the newest runs first."""
    table = schema.runs
    newest = sa.func.max(table.c.received_at)
    statement = (
        sa.select(table.c.sha)
        .where(table.c.target_id == runs.target_id(connection, target))
        # `%` and `_` of a mistyped SHA are no wildcards.
        .where(table.c.sha.startswith(beginning, autoescape=True))
        .where(runs.in_reported_state)
        .group_by(table.c.sha)
        .order_by(newest.desc(), table.c.sha)
        .limit(limit)
    )
    return list(connection.execute(statement).scalars())


def suites_of_target(connection: sa.Connection, target: TargetKey) -> list[str]:
    """Return the suites of a target."""
    series, suites = schema.series, schema.suites
    target_id = runs.target_id(connection, target)
    if target_id is None:
        return []
    statement = sa.select(suites.c.suite).join(series).where(series.c.target_id == target_id)
    return sorted(connection.execute(statement).scalars())


def has_test(connection: sa.Connection, target: TargetKey, suite: str, test_id: str) -> bool:
    """Return whether any run of a suite, on any target, had a test of this name."""
    row = names.find(connection, target.repository, suite)
    return row is not None and find_ordinal(connection, row, test_id) is not None


def names_of_suite(connection: sa.Connection, target: TargetKey, suite: str) -> Sequence[str]:
    """Return all names that tests of a suite have had, on any target."""
    row = names.find(connection, target.repository, suite)
    return [] if row is None else all_names(connection, row)


def timeline_of_test(
    connection: sa.Connection,
    target: TargetKey,
    suite: str,
    test_id: str,
    sha: str,
    aliases: Aliases = NO_ALIASES,
    traced: Mapping[TargetKey, TestHistory] | None = None,
) -> list[TimelineRun]:
    """Return a commit and those before it on the nightly branch, newest first; none if the commit has no results.

    `traced` is what `history` returned for the test; it is read if it is None.
    """
    points = _points(connection, target, suite, sha)
    if traced is None:
        traced = history.history(connection, target.repository, suite, test_id, aliases)
    return [_run(point, traced.get(target, ()), test_id) for point in points]


def _series(suite: names.SuiteRow, target_id: int | None) -> sa.Select[tuple[int]]:
    return sa.select(schema.series.c.id).filter_by(suite_id=suite.id, target_id=target_id)


def _points(connection: sa.Connection, target: TargetKey, suite: str, sha: str) -> Sequence[sa.RowMapping]:
    """Return the point of a commit and all nightly points before it, newest first."""
    row, target_id = names.find(connection, target.repository, suite), runs.target_id(connection, target)
    if row is None or target_id is None:
        return []
    points = schema.points
    of_series = points.c.series_id.in_(_series(row, target_id))
    point = connection.execute(sa.select(points).where(of_series, points.c.sha == sha)).mappings().first()
    if point is None:
        return []
    position = sa.tuple_(sa.literal(point["committed_at"], sa.Double), sa.literal(point["sha"], sa.Text))
    # Not only `linked` ones: a timeline also shows the runs that are left out, and why.
    earlier = (
        sa.select(points)
        .where(of_series, sa.tuple_(points.c.committed_at, points.c.sha) < position, points.c.mainline)
        .order_by(points.c.committed_at.desc(), points.c.sha.desc())
    )
    return [point, *connection.execute(earlier).mappings()]


def _run(point: sa.RowMapping, segments: Sequence[Segment], test_id: str) -> TimelineRun:
    sha, committed_at = point["sha"], point["committed_at"]
    if not point["linked"]:
        return TimelineRun(sha, committed_at, None, False, test_id, _left_out(point), point["infra"])
    index = bisect_right(segments, (committed_at, sha), key=lambda segment: (segment.committed_at, segment.sha))
    if not index:
        return TimelineRun(sha, committed_at, None, False, segments[0].name if segments else test_id)
    segment = segments[index - 1]
    return TimelineRun(sha, committed_at, segment.status, segment.flaky, segment.name)


def _left_out(point: sa.RowMapping) -> LeftOut:
    if not point["mainline"]:
        return LeftOut.PULL_REQUEST
    return LeftOut.UNUSABLE if point["infra"] else LeftOut.INCOMPLETE
