"""Which check runs are to be written again: those of commits whose results changed since one was written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from bot.results.model import TargetKey
from bot.results.state import PendingCheck, Run
from bot.results.store import runs, schema


@dataclass(frozen=True, slots=True)
class _Check:
    target_id: int
    scheduled_checks: PendingCheck
    changed_at: float
    announced: int


def touch(connection: sa.Connection, target: int, shas: Iterable[str], at: float) -> None:
    """Note that what the checks of these commits tell has changed."""
    table = schema.checks
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    statement = insert(table)
    again = {"changed_at": statement.excluded.changed_at, "revision": table.c.revision + 1, "over": False}
    statement = statement.on_conflict_do_update(index_elements=[table.c.target_id, table.c.sha], set_=again)
    first = {"target_id": target, "changed_at": at, "revision": 1, "announced": 0, "over": False}
    if rows := [first | {"sha": sha} for sha in sorted(set(shas))]:
        connection.execute(statement, rows)  # at once: a commit that comes late touches all later ones


def announced(connection: sa.Connection, target: int, scheduled_checks: PendingCheck) -> None:
    """Note that a check run is being written for a revision."""
    table = schema.checks
    connection.execute(
        table.update()
        .filter_by(target_id=target, sha=scheduled_checks.sha)
        .where(table.c.announced <= scheduled_checks.revision)
        .values(
            announced=scheduled_checks.revision,
            over=sa.case(
                (
                    table.c.revision == scheduled_checks.revision,
                    sa.or_(table.c.over, sa.literal(scheduled_checks.over)),
                ),
                else_=False,
            ),
        )
    )


def scheduled_checks(
    connection: sa.Connection, repository: str, now: float, settle: float, deadline: float
) -> list[PendingCheck]:
    """Return the check runs of a repository that are to be written at a moment.

    That is so once nothing has changed for `settle` seconds, and again when everything has arrived or nothing has
    changed for `deadline` seconds.
    """
    found = []
    for check in _select(connection, schema.targets.c.repository == repository, schema.OPEN):
        quiet = now - check.changed_at
        over = quiet >= deadline or nothing_awaited(connection, check.target_id, check.scheduled_checks.sha)
        if quiet >= settle and (over or check.announced < check.scheduled_checks.revision):
            found.append(
                PendingCheck(
                    check.scheduled_checks.about, check.scheduled_checks.sha, check.scheduled_checks.revision, over
                )
            )
    return found


def whole(connection: sa.Connection, target: int, sha: str) -> PendingCheck | None:
    """Return a check run that need not wait for more, if it is still to be written.

    All of its suites are complete, and it has every suite that the newest earlier commit on the nightly branch had.
    That is so for the first time alone: what comes once a check run was written waits until it is quiet, for each of
    hundreds of runs would write another one.
    """
    conditions = (schema.checks.c.target_id == target, schema.checks.c.sha == sha, schema.OPEN)
    for check in _select(connection, *conditions):
        if check.announced:
            continue
        reported = [run for _, run in runs.reported(connection, target, sha)]
        there = {run.claims.suite for run in reported if run.claims}
        expected = _suites_before(connection, target, sha)
        if expected and expected <= there and _all_here(reported):
            return PendingCheck(check.scheduled_checks.about, sha, check.scheduled_checks.revision, over=True)
    return None


def nothing_awaited(connection: sa.Connection, target: int, sha: str) -> bool:
    """Tell whether no suite, shard or file of a commit is missing; runs that cannot be used are not waited for."""
    reported = [run for _, run in runs.reported(connection, target, sha)]
    return _all_here(reported) and not missing_suites(connection, target, sha, reported)


def _all_here(reported: Iterable[Run]) -> bool:
    """Tell whether no shard or file is missing of the suites of these runs."""
    by_suite: dict[str, list[Run]] = {}
    for run in reported:
        if run.claims:
            by_suite.setdefault(run.claims.suite, []).append(run)
    return not any(those.missing or those.waiting for those in map(runs.shards, by_suite.values()))


def missing_suites(connection: sa.Connection, target: int, sha: str, reported: Iterable[Run]) -> tuple[str, ...]:
    """Return the suites that the newest earlier commit on the nightly branch had, and this one lacks.

    `reported` are its runs. Of a pull request's head a lab may test as little as it likes.
    """
    known = list(reported)
    admission = runs.admission(known)
    if admission is None or not admission.mainline:
        return ()
    there = {run.claims.suite for run in known if run.claims}
    return tuple(sorted(_suites_before(connection, target, sha) - there))


def _suites_before(connection: sa.Connection, target: int, sha: str) -> set[str]:
    points, series, suites = schema.points, schema.series, schema.suites
    of_target = sa.select(points.c.sha, points.c.committed_at, suites.c.suite).select_from(
        points.join(series).join(suites, series.c.suite_id == suites.c.id)
    )
    of_target = of_target.where(series.c.target_id == target)
    moment = connection.execute(
        sa.select(sa.func.min(points.c.committed_at))
        .select_from(points.join(series))
        .where(series.c.target_id == target, points.c.sha == sha)
    ).scalar()
    if moment is None:
        return set()
    position = (points.c.committed_at.desc(), points.c.sha.desc())
    last = connection.execute(
        of_target.where(points.c.mainline, points.c.committed_at < moment).order_by(*position).limit(1)
    ).first()
    if last is None:
        return set()
    return {row.suite for row in connection.execute(of_target.where(points.c.sha == last.sha))}


def _select(connection: sa.Connection, *conditions: sa.ColumnElement[bool] | sa.TextClause) -> list[_Check]:
    checks, targets = schema.checks, schema.targets
    statement = (
        sa.select(checks, targets.c.repository, targets.c.lab, targets.c.target)
        .join(targets)
        .where(*conditions)
        .order_by(checks.c.changed_at, checks.c.target_id, checks.c.sha)
    )
    return [
        _Check(
            row.target_id,
            PendingCheck(TargetKey(row.repository, row.lab, row.target), row.sha, row.revision, row.over),
            row.changed_at,
            row.announced,
        )
        for row in connection.execute(statement)
    ]
