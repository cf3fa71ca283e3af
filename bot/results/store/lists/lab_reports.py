"""Query what labs sent: last results, time until they arrive, unusable and missing nightly runs, refused uploads.

All queries are for a period and use indexes: runs of a target by time of arrival, points of a suite by time of commit.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from nightjar_formats.model import TargetKey

from bot.results.compare.health import RunFlips
from bot.results.state import Run, RunState
from bot.results.store.history import health
from bot.results.store.tables import runs, schema
from bot.results.store.tables.points import first_on_nightly, select_suites_on_targets, suites_on_targets

MOST_UNUSABLE = 20
"""The most refused and incomplete uploads that are listed."""


@dataclass(frozen=True, slots=True)
class CommitReport:
    """The suites of a target at a nightly commit: how many have reported, how many of these are infra or incomplete.

    Infra: without usable results, because of the lab's setup and not because of the commit. `incomplete` counts those
    of which a shard is missing, or that ended early, and that are not infra.
    """

    committed_at: float
    suites: int
    infra: int
    incomplete: int = 0

    @property
    def is_complete(self) -> bool:
        """Whether each suite that reported has complete and usable results."""
        return not self.infra and not self.incomplete


@dataclass(frozen=True, slots=True)
class TargetActivity:
    """The uploads of a target. Times are in seconds since 1970.

    `newest` is its last stored run on the nightly branch, and `first_commit_at` the time of the first commit with
    results there, both also before the period, and None if there is none.

    `latencies` are the seconds from each commit on the nightly branch to the first stored run of each suite, sorted.
    `commits` are those of the period, and `arrived` is when the last of their suites had arrived, by SHA. Both are only
    of runs that `in_order_of_commits` returns.
    """

    newest: Run | None
    first_commit_at: float | None
    latencies: Sequence[float]
    commits: Mapping[str, CommitReport]
    arrived: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class LabActivity:
    """The uploads of a lab since a moment, by target.

    `tested` are the commits of the nightly branch with results of any lab: their times, by SHA. `unusable` are the
    newest uploads that were refused, or whose files never arrived.
    """

    targets: Mapping[str, TargetActivity]
    tested: Mapping[str, float]
    unusable: Sequence[Run]


@dataclass(frozen=True, slots=True)
class NightlyReports:
    """The results of all targets of a repository on the nightly branch since a moment.

    `committed` has the time of each commit, and `arrived` the time of its first results from any lab, by SHA.
    `first_commits` has the time of each target's first commit, also before the period; `targets` has the results of
    each commit, by SHA.
    """

    committed: Mapping[str, float]
    arrived: Mapping[str, float]
    first_commits: Mapping[TargetKey, float]
    targets: Mapping[TargetKey, Mapping[str, CommitReport]]


def lab_activity(connection: sa.Connection, repository: str, lab: str, since: float) -> LabActivity:
    """Return what a lab has sent since a moment, in seconds since 1970."""
    target_ids = {key.target: number for key, number in _target_ids(connection, [repository], lab).items()}
    tested, activity = _activity_of(connection, [repository], target_ids.values(), since)
    targets = {target: activity[number] for target, number in target_ids.items()}
    return LabActivity(targets, tested[repository], _unusable(connection, target_ids.values(), since))


def activity_of_labs(
    connection: sa.Connection, repositories: Collection[str], since: float
) -> tuple[Mapping[str, Mapping[str, float]], dict[TargetKey, TargetActivity]]:
    """Return what all labs of some repositories have sent since a moment, by target, in as many statements as for one.

    Before it, it returns the tested commits of each repository, as `LabActivity.tested`.
    """
    target_ids = _target_ids(connection, repositories)
    tested, activity = _activity_of(connection, repositories, target_ids.values(), since)
    return tested, {key: activity[number] for key, number in target_ids.items()}


def _activity_of(
    connection: sa.Connection, repositories: Collection[str], target_ids: Collection[int], since: float
) -> tuple[dict[str, dict[str, float]], dict[int, TargetActivity]]:
    """Return the tested commits of each repository, and the activity of some of their targets, by the target's ID."""
    first_commits = _first_commits(connection, repositories, target_ids)
    tested, commits = _commits(connection, repositories, since)
    first_runs = {
        number: in_order_of_commits(runs) for number, runs in _first_runs(connection, target_ids, since).items()
    }
    newest = _newest(connection, target_ids)
    activity = {
        number: TargetActivity(
            newest=newest.get(number),
            first_commit_at=first_commits.get(number),
            latencies=sorted(run.latency for run in first_runs.get(number, ())),
            commits=commits.get(number, {}),
            arrived=_last_arrivals(first_runs.get(number, ())),
        )
        for number in target_ids
    }
    return tested, activity


def lab_flips(
    connection: sa.Connection, repository: str, lab: str, targets: Collection[str]
) -> dict[str, list[RunFlips]]:
    """Return how many tests flipped back in the newest runs of each suite, all suites of a target in one list."""
    flips_of: dict[str, list[RunFlips]] = {}
    if not targets:
        return flips_of
    suites = {
        suite.series: suite
        for suite in suites_on_targets(connection, repository, lab)
        if suite.target.target in targets
    }
    for series, flips in health.flips_of_suites(connection, suites.values()).items():
        flips_of.setdefault(suites[series].target.target, []).extend(flips)
    return flips_of


def nightly_reports(connection: sa.Connection, repository: str, since: float) -> NightlyReports:
    """Return the results of all targets of a repository since a moment, in seconds since 1970."""
    table = schema.targets
    rows = connection.execute(sa.select(table).filter_by(repository=repository))
    targets = {row.id: TargetKey(repository, row.lab, row.target) for row in rows}
    committed, commits = _commits(connection, [repository], since)
    target_ids = list(targets)
    first_commits = _first_commits(connection, [repository], target_ids)
    return NightlyReports(
        committed[repository],
        _arrived(connection, target_ids, since),
        {targets[target_id]: moment for target_id, moment in first_commits.items()},
        {targets[target_id]: reports for target_id, reports in commits.items()},
    )


def newest_run(connection: sa.Connection, target: TargetKey) -> Run | None:
    """Return the last stored run of a target on the nightly branch, or None."""
    target_id = runs.target_id(connection, target)
    return None if target_id is None else _newest(connection, [target_id]).get(target_id)


def unusable_targets(
    connection: sa.Connection, repository: str, lab: str | None = None, target: str | None = None
) -> dict[TargetKey, str]:
    """Return the targets whose newest nightly commit has no usable results of any suite, and why; None matches all."""
    # Subqueries instead of a join, for which PostgreSQL would read all points.
    points = schema.points
    columns = (
        _of_newest(column).label(column.name) for column in (points.c.committed_at, points.c.sha, points.c.infra)
    )
    newest_of = dict[TargetKey, list[tuple[float, str, str]]]()
    for row in connection.execute(select_suites_on_targets(repository, lab, target).add_columns(*columns)):
        # NULL for a suite that only pull requests have run.
        if row.committed_at is not None:
            newest = row.committed_at, row.sha, row.infra
            newest_of.setdefault(TargetKey(repository, row.lab, row.target), []).append(newest)
    unusable = dict[TargetKey, str]()
    for key, commits in newest_of.items():
        last = max(position for *position, _ in commits)
        reasons = [infra for *position, infra in commits if position == last]
        if all(reasons):
            unusable[key] = reasons[0]
    return unusable


def _of_newest(column: sa.ColumnElement[Any]) -> sa.ScalarSelect[Any]:
    """Return a subquery for a statement about series: a column of the newest point of each on the nightly branch."""
    points = schema.points
    return (
        sa.select(column)
        .where(points.c.series_id == schema.series.c.id, points.c.mainline)
        .order_by(points.c.committed_at.desc(), points.c.sha.desc())
        .limit(1)
        .correlate(schema.series)
        .scalar_subquery()
    )


def _target_ids(
    connection: sa.Connection, repositories: Collection[str], lab: str | None = None
) -> dict[TargetKey, int]:
    """Return the IDs of the targets of a lab, or of all labs, of some repositories."""
    table = schema.targets
    statement = sa.select(table.c.repository, table.c.lab, table.c.target, table.c.id).where(
        table.c.repository.in_(repositories)
    )
    rows = connection.execute(statement if lab is None else statement.filter_by(lab=lab))
    return {TargetKey(row.repository, row.lab, row.target): row.id for row in rows}


def _first_commits(
    connection: sa.Connection, repositories: Collection[str], target_ids: Collection[int]
) -> dict[int, float]:
    """Return the time of each target's first commit with results on the nightly branch, by the target's ID."""
    series = schema.series
    statement = (
        sa.select(series.c.target_id, first_on_nightly().label("first"))
        .select_from(schema.suites.join(series))
        .where(schema.suites.c.repository.in_(repositories), series.c.target_id.in_(target_ids))
    )
    first_commits: dict[int, float] = {}
    for row in connection.execute(statement):
        # NULL for a suite that only pull requests have run.
        if row.first is not None:
            first_commits[row.target_id] = min(row.first, first_commits.get(row.target_id, row.first))
    return first_commits


def _commits(
    connection: sa.Connection, repositories: Collection[str], since: float
) -> tuple[dict[str, dict[str, float]], dict[int, dict[str, CommitReport]]]:
    """Return the times of the nightly branches' commits that any lab has tested, and the results of each target.

    The times are by repository, then by SHA; the results are by the target's ID, then by SHA.
    """
    series, points, suites = schema.series, schema.points, schema.suites
    infra = sa.func.sum(sa.case((points.c.infra != "", 1), else_=0))
    incomplete = sa.func.sum(sa.case((sa.and_(points.c.infra == "", sa.not_(points.c.complete)), 1), else_=0))
    statement = (
        sa.select(
            suites.c.repository,
            series.c.target_id,
            points.c.sha,
            points.c.committed_at,
            sa.func.count(),
            infra,
            incomplete,
        )
        .select_from(suites.join(series).join(points, points.c.series_id == series.c.id))
        .where(suites.c.repository.in_(repositories), points.c.committed_at >= since, points.c.mainline)
        .group_by(suites.c.repository, series.c.target_id, points.c.sha, points.c.committed_at)
    )
    tested: dict[str, dict[str, float]] = {repository: {} for repository in repositories}
    reports: dict[int, dict[str, CommitReport]] = {}
    for repository, target_id, sha, committed_at, *counts in connection.execute(statement):
        tested[repository][sha] = committed_at
        reports.setdefault(target_id, {})[sha] = CommitReport(committed_at, *map(int, counts))
    return tested, reports


class FirstRun(NamedTuple):
    """The first stored run of a suite at a commit."""

    sha: str
    suite: str
    received_at: float
    latency: float

    @property
    def committed_at(self) -> float:
        """When the commit was made."""
        return self.received_at - self.latency


def in_order_of_commits(first_runs: Iterable[FirstRun]) -> list[FirstRun]:
    """Return the runs of a target that arrived before any run of a newer commit of their suite.

    The age of an older commit, such as of a night before the lab joined, says nothing about how fast the lab is.
    """
    newest: dict[str, float] = {}
    in_order = []
    for run in sorted(first_runs, key=lambda run: (run.received_at, run.committed_at)):
        if run.committed_at >= newest.get(run.suite, run.committed_at):
            newest[run.suite] = run.committed_at
            in_order.append(run)
    return in_order


def _first_runs(connection: sa.Connection, target_ids: Collection[int], since: float) -> dict[int, list[FirstRun]]:
    """Return the first run of each suite at each commit on the nightly branch, by the target's ID."""
    table = schema.runs
    received = sa.func.min(table.c.received_at)
    # Results arrive after their commit, so the condition on `received_at` removes none: it selects the period in the
    # index `nightjar_runs_received`, which has no `committed_at`.
    statement = (
        sa.select(table.c.target_id, table.c.sha, table.c.suite, received, received - table.c.committed_at)
        .where(table.c.target_id.in_(target_ids), table.c.received_at >= since)
        .where(schema.unindexed_state == RunState.STORED.value, table.c.mainline, table.c.committed_at >= since)
        .group_by(table.c.target_id, table.c.sha, table.c.suite, table.c.committed_at)
    )
    runs_of_target: dict[int, list[FirstRun]] = {}
    for target_id, *values in connection.execute(statement):
        runs_of_target.setdefault(target_id, []).append(FirstRun(*values))
    return runs_of_target


def _last_arrivals(first_runs: Sequence[FirstRun]) -> dict[str, float]:
    """Return, for each commit, when the first run of its last suite arrived."""
    arrivals: dict[str, float] = {}
    for run in first_runs:
        arrivals[run.sha] = max(run.received_at, arrivals.get(run.sha, 0.0))
    return arrivals


def _arrived(connection: sa.Connection, target_ids: Collection[int], since: float) -> dict[str, float]:
    """Return when the first results of each commit on the nightly branch arrived from any of these targets."""
    table = schema.runs
    statement = (
        sa.select(table.c.sha, sa.func.min(table.c.received_at).label("received_at"))
        .where(table.c.target_id.in_(target_ids), table.c.received_at >= since)
        .where(schema.unindexed_state == RunState.STORED.value, table.c.mainline, table.c.committed_at >= since)
        .group_by(table.c.sha)
    )
    return {row.sha: row.received_at for row in connection.execute(statement)}


def _newest(connection: sa.Connection, target_ids: Collection[int]) -> dict[int, Run]:
    """Return the last stored run of each target on the nightly branch, by the target's ID."""
    table, targets = schema.runs, schema.targets
    # One subquery per target stops at its last run in the index `nightjar_runs_received`; a maximum by group would read
    # all runs.
    last = (
        sa.select(table.c.id)
        .where(table.c.target_id == targets.c.id, schema.unindexed_state == RunState.STORED.value, table.c.mainline)
        .order_by(table.c.received_at.desc(), table.c.id.desc())
        .limit(1)
        .correlate(targets)
        .scalar_subquery()
    )
    rows = connection.execute(runs.select().where(table.c.id.in_(sa.select(last).where(targets.c.id.in_(target_ids)))))
    return {row["target_id"]: runs.read(row) for row in rows.mappings()}


def _unusable(connection: sa.Connection, target_ids: Collection[int], since: float) -> list[Run]:
    """Return the newest uploads since a moment that were refused, or whose files never arrived."""
    table = schema.runs
    states = [RunState.REFUSED.value, RunState.INCOMPLETE.value]
    statement = runs.select().where(
        table.c.target_id.in_(target_ids), table.c.received_at >= since, schema.unindexed_state.in_(states)
    )
    newest_first = statement.order_by(table.c.received_at.desc(), table.c.id.desc()).limit(MOST_UNUSABLE)
    return [runs.read(row) for row in connection.execute(newest_first).mappings()]
