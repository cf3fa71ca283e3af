"""Find the check runs that must be written again: those of commits whose results have changed since the last write."""

from __future__ import annotations

import bisect
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import sqlalchemy as sa
from nightjar_formats.model import TargetKey
from sqlalchemy.dialects import postgresql, sqlite

from bot.engine.sql import encoding
from bot.results.state import PendingCheck, Run, RunState
from bot.results.store import runs, schema


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
    schema.found_state == RunState.INCOMPLETE.value,
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
_suite_name = lru_cache(maxsize=1000)(encoding.original)


def _touching(insert: postgresql.Insert | sqlite.Insert) -> postgresql.Insert | sqlite.Insert:
    table = schema.checks
    again = {"changed_at": insert.excluded.changed_at, "revision": table.c.revision + 1, "over": False}
    return insert.on_conflict_do_update(index_elements=[table.c.target_id, table.c.sha], set_=again)


_TOUCH = {
    "postgresql": _touching(postgresql.insert(schema.checks)),
    "sqlite": _touching(sqlite.insert(schema.checks)),
}


def touch(connection: sa.Connection, target: int, shas: Iterable[str], at: float) -> None:
    """Note that the check runs of these commits must say something else."""
    first = {"target_id": target, "changed_at": at, "revision": 1, "announced": 0, "over": False}
    if rows := [first | {"sha": sha} for sha in sorted(set(shas))]:
        # In one statement, because a commit that arrives late touches many later ones.
        connection.execute(_TOUCH[connection.dialect.name], rows)


def announced(connection: sa.Connection, target: int, pending: PendingCheck) -> None:
    """Note that a check run is being written for a revision."""
    table = schema.checks
    # If results have changed since, it is decided again whether more are expected. A slower replica that marks an older
    # revision changes nothing.
    is_newest = table.c.revision == pending.revision
    over = sa.case((is_newest, sa.or_(table.c.over, sa.literal(pending.over))), else_=False)
    connection.execute(
        table.update()
        .filter_by(target_id=target, sha=pending.sha)
        .where(table.c.announced <= pending.revision)
        .values(announced=pending.revision, over=over)
    )


def scheduled_checks(
    connection: sa.Connection, repository: str, now: float, settle: float, deadline: float
) -> list[PendingCheck]:
    """Return the check runs of a repository that must be written at a moment.

    A check run is written once nothing has changed for `settle` seconds, and again when everything has arrived or
    nothing has changed for `deadline` seconds. Each arrival makes a new revision. So a check run that was written for
    the newest revision only waits for the deadline, and the bot need not look again and again for missing results.
    """
    table = schema.checks
    in_time = sa.or_(table.c.announced < table.c.revision, table.c.changed_at <= now - deadline)
    found = _select(
        connection, schema.targets.c.repository == repository, schema.OPEN, table.c.changed_at <= now - settle, in_time
    )
    undecided = defaultdict[int, list[str]](list)
    for check in found:
        if check.changed_at > now - deadline:
            undecided[check.target_id].append(check.pending.sha)
    complete = {target: _complete(connection, target, shas) for target, shas in undecided.items()}
    return [
        check.pending
        if check.pending.over == over
        else PendingCheck(check.pending.about, check.pending.sha, check.pending.revision, over)
        for check in found
        for over in [check.changed_at <= now - deadline or check.pending.sha in complete[check.target_id]]
    ]


def whole(connection: sa.Connection, target: int, sha: str) -> PendingCheck | None:
    """Return a check run that need not wait for more, if it is still to be written.

    All of its suites are complete, and it has every suite that the newest earlier commit on the nightly branch had.
    This applies only before the first check run is written. Results that arrive later wait until no more arrive, or
    each of hundreds of runs would cause a write (docs/decisions/when-a-check-run-is-written.md).
    """
    conditions = (schema.checks.c.target_id == target, schema.checks.c.sha == sha, schema.OPEN)
    for check in _select(connection, *conditions):
        if check.announced:
            continue
        reported = [run for _, run in runs.reported(connection, target, sha)]
        expected = _suites_before(connection, target, _moments(connection, target, [sha])).get(sha)
        if expected and expected <= _suites(reported) and _all_here(reported):
            return PendingCheck(check.pending.about, sha, check.pending.revision, over=True)
    return None


def _complete(connection: sa.Connection, target: int, shas: Sequence[str]) -> set[str]:
    """Return the commits that lack no suite, shard or file. Nothing more is expected of unusable runs."""
    found = set[str]()
    for some in schema.in_parts(shas):
        arrived, awaited = _arrived(connection, target, some)
        here = {sha: {one.suite for one in points} for sha, points in arrived.items()}
        moments = {
            sha: min(one.committed_at for one in points)
            for sha, points in arrived.items()
            if any(one.mainline for one in points)
        }
        if others := [sha for sha in some if sha not in arrived and sha not in awaited]:
            at = runs.reported_runs_at(connection, [(target, sha) for sha in others])
            reported = {sha: [run for _, run in at.get((target, sha), [])] for sha in others}
            here |= {sha: _suites(those) for sha, those in reported.items() if _all_here(those)}
            mainline = [sha for sha in here if sha not in arrived and _is_mainline(reported[sha])]
            moments |= _moments(connection, target, mainline)
        # Only nightly commits have moments: a lab may test as little of a pull request's head as it likes.
        before = _suites_before(connection, target, moments)
        found |= {sha for sha, suites in here.items() if before.get(sha, set()) <= suites}
    return found


def _arrived(
    connection: sa.Connection, target: int, shas: Sequence[str]
) -> tuple[dict[str, list[_SuitePoint]], set[str]]:
    """Return the points of those commits all of whose suites are complete, and the commits that wait for more.

    Runs need not be read for either. An incomplete suite waits for more, unless files of one of its runs never arrived:
    the bot no longer waits for such a run.
    """
    found, incomplete = defaultdict[str, list[_SuitePoint]](list), set[str]()
    for sha, suite, *point, complete in connection.execute(_ARRIVED, {"target": target, "shas": shas}).all():
        found[sha].append(_SuitePoint(_suite_name(suite), *point))
        if not complete:
            incomplete.add(sha)
    awaited = set[str]()
    if incomplete:
        broken = connection.execute(_BROKEN, {"target": target, "shas": sorted(incomplete)}).scalars()
        awaited = incomplete.difference(broken)
    return {sha: those for sha, those in found.items() if sha not in incomplete}, awaited


def is_pending(connection: sa.Connection, target: int, sha: str) -> bool:
    """Return whether the check run of a commit is still to be written, or waits for more."""
    conditions = (schema.checks.c.target_id == target, schema.checks.c.sha == sha, schema.OPEN)
    return bool(_select(connection, *conditions))


def _all_here(reported: Iterable[Run]) -> bool:
    """Return whether no shard or file is missing of the suites of these runs."""
    by_suite: dict[str, list[Run]] = {}
    for run in reported:
        if run.claims:
            by_suite.setdefault(run.claims.suite, []).append(run)
    return not any(those.missing or those.waiting for those in map(runs.shards, by_suite.values()))


def missing_suites(connection: sa.Connection, target: int, sha: str, reported: Iterable[Run]) -> tuple[str, ...]:
    """Return the suites that the newest earlier commit on the nightly branch had, and this one lacks.

    `reported` are its runs. A lab may test as little of a pull request's head as it likes.
    """
    known = list(reported)
    if not _is_mainline(known):
        return ()
    return tuple(
        sorted(_suites_before(connection, target, _moments(connection, target, [sha])).get(sha, set()) - _suites(known))
    )


def _is_mainline(reported: list[Run]) -> bool:
    admission = runs.admission(reported)
    return admission is not None and admission.mainline


def _suites(reported: Iterable[Run]) -> set[str]:
    return {run.claims.suite for run in reported if run.claims}


def _moments(connection: sa.Connection, target: int, shas: Sequence[str]) -> dict[str, float]:
    """Return the time of each of these commits that has a point in any suite of the target."""
    found = connection.execute(_MOMENTS, {"target": target, "shas": shas}).all()
    return {row.sha: row.moment for row in found}


def _suites_before(connection: sa.Connection, target: int, moments: Mapping[str, float]) -> dict[str, set[str]]:
    """Return for each of some commits the suites of the newest earlier commit on the nightly branch, if there is one.

    `moments` has the time of each commit. The number of statements does not depend on the number of commits.
    """
    if not moments:
        return {}
    first = connection.execute(_LAST_BEFORE, {"target": target, "moment": min(moments.values())}).scalar()
    if first is None:
        first = min(moments.values())
    between = connection.execute(_BETWEEN, {"target": target, "first": first, "last": max(moments.values())}).all()
    had, on_branch = defaultdict[str, set[str]](set), set[tuple[float, str]]()
    for committed_at, sha, mainline, suite in between:
        had[sha].add(_suite_name(suite))
        if mainline:
            on_branch.add((committed_at, sha))
    order = sorted(on_branch)
    last = {
        sha: order[place - 1][1]
        for sha, moment in moments.items()
        if (place := bisect.bisect_left(order, (moment, "")))  # before all commits of the same moment
    }
    return {sha: had[before] for sha, before in last.items()}


def _select(connection: sa.Connection, *conditions: sa.ColumnElement[bool] | sa.TextClause) -> list[_Check]:
    checks, targets = schema.checks, schema.targets
    statement = (
        sa.select(
            checks.c.target_id,
            checks.c.sha,
            checks.c.changed_at,
            checks.c.revision,
            checks.c.announced,
            checks.c.over,
            targets.c.repository,
            targets.c.lab,
            targets.c.target,
        )
        .join(targets)
        .where(*conditions)
        .order_by(checks.c.changed_at, checks.c.target_id, checks.c.sha)
    )
    about: dict[int, TargetKey] = {}  # thousands of commits may wait on one target
    found = []
    for number, sha, changed_at, revision, announced, over, *of in connection.execute(statement).all():
        target = about.get(number) or about.setdefault(number, TargetKey(*of))
        found.append(_Check(number, PendingCheck(target, sha, revision, over), changed_at, announced))
    return found
