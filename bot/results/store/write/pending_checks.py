"""Find the check runs to write: results of their commits have changed since the last write."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import sqlalchemy as sa
from nightjar_formats.model import RunKey, TargetKey
from sqlalchemy.dialects import postgresql, sqlite

from bot.engine.sql.portable import original
from bot.results.state import PendingCheck, Run, RunState
from bot.results.store.tables import runs, schema


@dataclass(frozen=True, slots=True)
class _Check:
    target_id: int
    pending: PendingCheck
    changed_at: float
    announced: int


class _SuitePoint(NamedTuple):
    suite: str
    mainline: bool
    committed_at: float


# Made once, because making a statement takes longer than answering it.
_POINTS, _SUITES = schema.points, schema.suites
_OF_TARGET = schema.series.c.target_id == sa.bindparam("target")
_OF_SHAS = _POINTS.c.sha.in_(sa.bindparam("shas", expanding=True))
_JOINED = _POINTS.join(schema.series).join(_SUITES, schema.series.c.suite_id == _SUITES.c.id)
_SUITE = sa.type_coerce(_SUITES.c.suite, sa.Text)
"""The stored form of a name. There are thousands of rows but few names, so `_suite_name` converts each name once."""
_IS_REPORTED = sa.exists().where(
    schema.runs.c.target_id == sa.bindparam("target"),
    schema.runs.c.sha == _POINTS.c.sha,
    schema.runs.c.suite == _SUITES.c.suite,
    runs.in_reported_state,
)
# The point stays even if all of its runs turn out to be refused. Then no more results of that suite are expected.
_ARRIVED = (
    sa.select(_POINTS.c.sha, _SUITE, _POINTS.c.mainline, _POINTS.c.committed_at, _POINTS.c.complete)
    .select_from(_JOINED)
    .where(_OF_TARGET, _OF_SHAS, sa.or_(_POINTS.c.complete, _IS_REPORTED))
)
_BROKEN = sa.select(schema.runs.c.sha).where(
    schema.runs.c.target_id == sa.bindparam("target"),
    schema.runs.c.sha.in_(sa.bindparam("shas", expanding=True)),
    schema.unindexed_state == RunState.INCOMPLETE.value,
)
_MOMENTS = (
    sa.select(_POINTS.c.sha, sa.func.min(_POINTS.c.committed_at).label("moment"))
    .select_from(_JOINED)
    .where(_OF_TARGET, _OF_SHAS)
    .group_by(_POINTS.c.sha)
)
_LAST_BEFORE = (
    sa.select(_POINTS.c.committed_at)
    .select_from(_JOINED)
    .where(_OF_TARGET, _POINTS.c.mainline, _POINTS.c.committed_at < sa.bindparam("moment"))
    .order_by(_POINTS.c.committed_at.desc())
    .limit(1)
)
_BETWEEN = (
    sa.select(_POINTS.c.committed_at, _POINTS.c.sha, _POINTS.c.mainline, _SUITE)
    .select_from(_JOINED)
    .where(_OF_TARGET, _POINTS.c.committed_at < sa.bindparam("last"), _POINTS.c.committed_at >= sa.bindparam("first"))
)
_CHECKS = (
    sa.select(
        *(schema.checks.c[name] for name in ("target_id", "sha", "changed_at", "revision", "announced", "over")),
        *(schema.targets.c[name] for name in ("repository", "lab", "target")),
    )
    .join(schema.targets)
    .order_by(schema.checks.c.changed_at, schema.checks.c.target_id, schema.checks.c.sha)
)
_OPEN_CHECK = _CHECKS.where(*runs.OF_TARGET, schema.checks.c.sha == sa.bindparam("sha"), schema.OPEN)
_SCHEDULED = _CHECKS.where(
    schema.targets.c.repository == sa.bindparam("repository"),
    schema.OPEN,
    schema.checks.c.changed_at <= sa.bindparam("settled"),
    sa.or_(schema.checks.c.announced < schema.checks.c.revision, schema.checks.c.changed_at <= sa.bindparam("overdue")),
)
_UNFINISHED = sa.union(
    sa.select(schema.targets.c.repository, sa.literal_column("1"))
    .select_from(schema.runs.join(schema.targets))
    .where(schema.runs.c.state == RunState.WAITING.value),
    sa.select(schema.targets.c.repository, sa.literal_column("0"))
    .select_from(schema.checks.join(schema.targets))
    .where(schema.OPEN),
)
_REVISION = sa.bindparam("announced_revision", type_=sa.Integer)
_OVER = sa.bindparam("is_over", type_=sa.Boolean)
# If results have changed since, whether more are expected is decided again. A slower replica that stores an older
# revision changes nothing.
_ANNOUNCE = (
    schema.checks.update()
    .where(
        schema.checks.c.target_id == runs.TARGET_ID,
        schema.checks.c.sha == sa.bindparam("commit"),
        schema.checks.c.announced <= _REVISION,
    )
    .values(
        announced=_REVISION,
        over=sa.case((schema.checks.c.revision == _REVISION, sa.or_(schema.checks.c.over, _OVER)), else_=False),
    )
)
_suite_name = lru_cache(maxsize=1000)(original)


def _touching(insert: postgresql.Insert | sqlite.Insert) -> postgresql.Insert | sqlite.Insert:
    table = schema.checks
    values = {"changed_at": insert.excluded.changed_at, "revision": table.c.revision + 1, "over": False}
    return insert.on_conflict_do_update(index_elements=[table.c.target_id, table.c.sha], set_=values)


_TOUCH = {"postgresql": _touching(postgresql.insert(schema.checks)), "sqlite": _touching(sqlite.insert(schema.checks))}


def touch(connection: sa.Connection, target_id: int, shas: Iterable[str], moment: float) -> None:
    """Mark the check runs of these commits as pending, because their content changes."""
    values = {"target_id": target_id, "changed_at": moment, "revision": 1, "announced": 0, "over": False}
    if rows := [values | {"sha": sha} for sha in sorted(set(shas))]:
        # In one statement, because a commit that arrives late touches many later ones.
        connection.execute(_TOUCH[connection.dialect.name], rows)


def touch_check(connection: sa.Connection, target: TargetKey, sha: str, moment: float) -> None:
    """Mark the check run of a commit as pending, although its results are the same."""
    target_id = runs.target_id(connection, target)
    if target_id is not None:
        touch(connection, target_id, [sha], moment)


def unfinished(connection: sa.Connection) -> tuple[set[str], set[str]]:
    """Return the repositories with runs that wait for their files, and those with open check runs.

    A check run is open if it is pending, or if more results of its commit are expected.
    """
    waiting, with_checks = set[str](), set[str]()
    for repository, is_waiting in connection.execute(_UNFINISHED):
        (waiting if is_waiting else with_checks).add(repository)
    return waiting, with_checks


def announced(connection: sa.Connection, pending: PendingCheck) -> None:
    """Store that a check run is being written for a revision."""
    values = {"commit": pending.sha, "announced_revision": pending.revision, "is_over": pending.over}
    connection.execute(_ANNOUNCE, asdict(pending.target) | values)


def scheduled_checks(
    connection: sa.Connection, repository: str, moment: float, settle: float, deadline: float
) -> list[PendingCheck]:
    """Return the check runs of a repository that must be written at a moment.

    A check run is written once nothing has changed for `settle` seconds, and again when everything has arrived or
    nothing has changed for `deadline` seconds. Each arrival makes a new revision. So a check run that was written for
    the newest revision only waits for the deadline, and the bot need not look again and again for missing results.
    """
    times = {"settled": moment - settle, "overdue": moment - deadline}
    checks = _checks(connection, _SCHEDULED, times | {"repository": repository})
    undecided = defaultdict[int, list[str]](list)
    for check in checks:
        if check.changed_at > moment - deadline:
            undecided[check.target_id].append(check.pending.sha)
    complete = {target_id: _complete(connection, target_id, shas) for target_id, shas in undecided.items()}
    return [
        check.pending
        if check.pending.over == is_over
        else PendingCheck(check.pending.target, check.pending.sha, check.pending.revision, is_over)
        for check in checks
        for is_over in [check.changed_at <= moment - deadline or check.pending.sha in complete[check.target_id]]
    ]


def complete_check(connection: sa.Connection, target: TargetKey | RunKey, sha: str) -> PendingCheck | None:
    """Return the check run of a commit if it is pending and need not wait for more results.

    That is so if all of its suites are complete, and it has every suite of the newest earlier commit on the nightly
    branch. The very first run of a target does not wait either: somebody sets up a lab, and watches.

    This applies only before the first check run is written. Results that arrive later wait until no more arrive, or
    each of hundreds of runs would cause a write (docs/decisions/when-a-check-run-is-written.md).
    """
    for check in _checks(connection, _OPEN_CHECK, asdict(target) | {"sha": sha}):
        if check.announced:
            continue
        target_id = check.target_id
        reported = runs.reported(connection, target_id, sha).runs
        expected = _suites_before(connection, target_id, _commit_times(connection, target_id, [sha])).get(sha)
        has_all = expected <= _suites(reported) if expected else _is_only_run(connection, target_id)
        if has_all and _is_complete(reported):
            return PendingCheck(check.pending.target, sha, check.pending.revision, over=True)
    return None


def _is_only_run(connection: sa.Connection, target_id: int) -> bool:
    newest = sa.select(schema.runs.c.id).where(schema.runs.c.target_id == target_id)
    return len(connection.execute(newest.order_by(schema.runs.c.received_at.desc()).limit(2)).all()) == 1


def _complete(connection: sa.Connection, target_id: int, shas: Sequence[str]) -> set[str]:
    """Return the commits that lack no suite, shard or file. The bot expects nothing more of unusable runs."""
    complete = set[str]()
    for chunk in schema.in_chunks(shas):
        arrived, awaited = _arrived(connection, target_id, chunk)
        suites_of = {sha: {point.suite for point in points} for sha, points in arrived.items()}
        commit_times = {
            sha: min(point.committed_at for point in points)
            for sha, points in arrived.items()
            if any(point.mainline for point in points)
        }
        if unknown := [sha for sha in chunk if sha not in arrived and sha not in awaited]:
            runs_at = runs.reported_runs_at(connection, [(target_id, sha) for sha in unknown])
            reported = {sha: [run for _, run in runs_at.get((target_id, sha), [])] for sha in unknown}
            suites_of |= {sha: _suites(runs) for sha, runs in reported.items() if _is_complete(runs)}
            mainline = [sha for sha in suites_of if sha not in arrived and _is_mainline(reported[sha])]
            commit_times |= _commit_times(connection, target_id, mainline)
        # Only nightly commits need earlier suites: a lab may test as little of a pull request's head as it likes.
        expected = _suites_before(connection, target_id, commit_times)
        complete |= {sha for sha, suites in suites_of.items() if expected.get(sha, set()) <= suites}
    return complete


def _arrived(
    connection: sa.Connection, target_id: int, shas: Sequence[str]
) -> tuple[dict[str, list[_SuitePoint]], set[str]]:
    """Return the points of the commits whose suites are all complete, and the commits that wait for more results.

    It reads no runs. An incomplete suite waits for more, unless files of one of its runs never arrived: the bot no
    longer waits for such a run.
    """
    points_of, incomplete = defaultdict[str, list[_SuitePoint]](list), set[str]()
    for sha, suite, *point, complete in connection.execute(_ARRIVED, {"target": target_id, "shas": shas}).all():
        points_of[sha].append(_SuitePoint(_suite_name(suite), *point))
        if not complete:
            incomplete.add(sha)
    awaited = set[str]()
    if incomplete:
        broken = connection.execute(_BROKEN, {"target": target_id, "shas": sorted(incomplete)}).scalars()
        awaited = incomplete.difference(broken)
    return {sha: points for sha, points in points_of.items() if sha not in incomplete}, awaited


def is_pending(connection: sa.Connection, target: TargetKey, sha: str) -> bool:
    """Return whether the check run of a commit is pending, or waits for more results."""
    return bool(_checks(connection, _OPEN_CHECK, asdict(target) | {"sha": sha}))


def _is_complete(reported: Iterable[Run]) -> bool:
    """Return whether the suites of these runs lack no shard and no file."""
    by_suite: dict[str, list[Run]] = {}
    for run in reported:
        if run.claims:
            by_suite.setdefault(run.claims.suite, []).append(run)
    return not any(shards.missing or shards.waiting for shards in map(runs.shards, by_suite.values()))


def missing_suites(connection: sa.Connection, sha: str, reported: runs.ReportedRuns) -> tuple[str, ...]:
    """Return the suites that the newest earlier commit on the nightly branch had, and this one lacks.

    `reported` are its runs. A lab may test as little of a pull request's head as it likes.
    """
    target_id, admission = reported.target_id, reported.admission
    if target_id is None or admission is None or not admission.mainline:
        return ()
    expected = _suites_before(connection, target_id, _commit_times(connection, target_id, [sha])).get(sha, set())
    return tuple(sorted(expected - _suites(reported.runs)))


def _is_mainline(reported: list[Run]) -> bool:
    admission = runs.admission(reported)
    return admission is not None and admission.mainline


def _suites(reported: Iterable[Run]) -> set[str]:
    return {run.claims.suite for run in reported if run.claims}


def _commit_times(connection: sa.Connection, target_id: int, shas: Sequence[str]) -> dict[str, float]:
    """Return the time of each of these commits that has a point in any suite of the target."""
    rows = connection.execute(_MOMENTS, {"target": target_id, "shas": shas}).all()
    return {row.sha: row.moment for row in rows}


def _suites_before(connection: sa.Connection, target_id: int, commit_times: Mapping[str, float]) -> dict[str, set[str]]:
    """Return the suites of the newest nightly commit before each commit; commits without an earlier one are left out.

    `commit_times` has the time of each commit. The number of statements does not depend on the number of commits.
    """
    if not commit_times:
        return {}
    oldest = connection.execute(_LAST_BEFORE, {"target": target_id, "moment": min(commit_times.values())}).scalar()
    if oldest is None:
        oldest = min(commit_times.values())
    rows = connection.execute(
        _BETWEEN, {"target": target_id, "first": oldest, "last": max(commit_times.values())}
    ).all()
    suites_of, on_branch = defaultdict[str, set[str]](set), set[tuple[float, str]]()
    for committed_at, sha, mainline, suite in rows:
        suites_of[sha].add(_suite_name(suite))
        if mainline:
            on_branch.add((committed_at, sha))
    order = sorted(on_branch)
    last = {
        sha: order[index - 1][1]
        for sha, committed_at in commit_times.items()
        if (index := bisect.bisect_left(order, (committed_at, "")))  # before all commits of the same moment
    }
    return {sha: suites_of[previous] for sha, previous in last.items()}


def _checks(connection: sa.Connection, statement: sa.Select[Any], values: Mapping[str, Any]) -> list[_Check]:
    """Return the check runs that a statement selects, first the ones that changed first."""
    targets_by_id: dict[int, TargetKey] = {}  # thousands of commits may wait on one target
    pending = []
    for target_id, sha, changed_at, revision, announced, is_over, *key_fields in connection.execute(statement, values):
        target = targets_by_id.get(target_id) or targets_by_id.setdefault(target_id, TargetKey(*key_fields))
        pending.append(_Check(target_id, PendingCheck(target, sha, revision, is_over), changed_at, announced))
    return pending
