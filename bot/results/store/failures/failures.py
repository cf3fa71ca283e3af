"""Find the lasting failures in the newest known runs of a target, which of them were reported, and how those ended."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, count
from typing import Any

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, at, status_of
from nightjar_formats.model import GOOD, TargetKey
from sqlalchemy.dialects import postgresql, sqlite

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.flaky import flakiness_of
from bot.results.compare.lasting import Segment, is_steady, lasting_failure
from bot.results.store.history.series_names import series_names
from bot.results.store.history.windows import histories
from bot.results.store.tables import ancestry, names, runs, schema
from bot.results.store.tables.cells import FAILS, IS_FAILURE
from bot.results.store.tables.names import SuiteNames
from bot.results.store.tables.points import Position


@dataclass(frozen=True, slots=True)
class Failure:
    """A failing test: it has failed since the commit `since`, and last passed at `good` (empty if it never passed).

    `steady`: so many runs in a row failed, after runs that passed, that unreliable results do not explain it. Stored
    failures don't have it.
    """

    suite: str
    test: str
    since: str
    good: str = ""
    steady: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class FailureEnd:
    """How a reported failure ended, and at which nightly commit; both are empty while it lasts."""

    how: str
    sha: str


@dataclass(frozen=True, slots=True)
class NewestRun:
    """The newest usable commit of a suite on a target, in the order of commits.

    `failing` is the number of tests that fail there.
    """

    suite: str
    sha: str
    committed_at: float
    failing: int


@dataclass(frozen=True, slots=True)
class SuiteFailures:
    """The failures in the newest run of a suite: lasting ones that were not reported (`began`), and reported ones.

    Of the reported ones, `still` fail or were skipped, `recovered` passed, and `absent` are not in the run. A failure
    that the flakiness of its test explains is not in `began`.
    """

    suite: str
    sha: str
    began: tuple[Failure, ...] = ()
    still: tuple[Failure, ...] = ()
    recovered: tuple[Failure, ...] = ()
    absent: tuple[Failure, ...] = ()


def newest_runs(connection: sa.Connection, about: TargetKey) -> list[NewestRun]:
    """Return the newest run of each suite of a target, the newest of them first."""
    points, target = schema.points, runs.target_id(connection, about)
    if target is None:
        return []
    suites = sa.select(schema.series.c.id, schema.suites.c.suite).join(schema.suites)
    found = []
    for series, suite in connection.execute(suites.where(schema.series.c.target_id == target)).all():
        row = connection.execute(
            sa.select(points.c.sha, points.c.committed_at)
            .where(points.c.series_id == series, points.c.linked)
            .order_by(points.c.committed_at.desc(), points.c.sha.desc())
            .limit(1)
        ).first()
        if row is not None:
            failing = sum(_statuses(connection, target, suite, row.sha).translate(IS_FAILURE))
            found.append(NewestRun(suite, row.sha, row.committed_at, failing))
    return sorted(found, key=lambda one: (one.committed_at, one.sha, one.suite), reverse=True)


def late_run(connection: sa.Connection, about: TargetKey, sha: str) -> tuple[str, float] | None:
    """Return the older nightly commit whose results arrived last, if any arrived after those of a commit.

    The second value is its time, in seconds since 1970.
    """
    table, target = schema.runs, runs.target_id(connection, about)
    here = connection.execute(
        sa.select(sa.func.min(table.c.received_at), sa.func.min(table.c.committed_at)).filter_by(
            target_id=target, sha=sha
        )
    ).one()
    row = connection.execute(
        sa.select(table.c.sha, table.c.committed_at)
        .where(table.c.target_id == target, table.c.received_at > here[0])
        .where(table.c.mainline, table.c.committed_at < here[1])
        .order_by(table.c.received_at.desc())
        .limit(1)
    ).first()
    return (row.sha, row.committed_at) if row is not None else None


def moments(connection: sa.Connection, about: TargetKey, shas: Collection[str]) -> dict[str, float]:
    """Return the times of commits that a target tested, in seconds since 1970."""
    table, target = schema.runs, runs.target_id(connection, about)
    found = dict[str, float]()
    wanted = sorted(shas)
    for some in schema.in_parts(wanted):
        of = table.c.sha.in_(some)
        statement = sa.select(table.c.sha, sa.func.min(table.c.committed_at).label("at"))
        statement = statement.where(table.c.target_id == target, of, table.c.committed_at.is_not(None))
        found |= {row.sha: row.at for row in connection.execute(statement.group_by(table.c.sha))}
    return found


def given_up(connection: sa.Connection, about: TargetKey, sha: str) -> set[str]:
    """Return the suites without results at a commit on the nightly branch, at the one before, and later."""
    points, series, suites = schema.points, schema.series, schema.suites
    target = runs.target_id(connection, about)
    of_target = sa.and_(series.c.target_id == target, points.c.mainline)
    every = sa.select(suites.c.suite, points.c.committed_at, points.c.sha).select_from(
        points.join(series).join(suites, series.c.suite_id == suites.c.id)
    )
    here = connection.execute(
        sa.select(sa.func.min(points.c.committed_at))
        .select_from(points.join(series))
        .where(of_target, points.c.sha == sha)
    ).scalar()
    before = connection.execute(
        sa.select(sa.func.max(points.c.committed_at))
        .select_from(points.join(series))
        .where(of_target, points.c.committed_at < here)
    ).scalar()
    if here is None or before is None:
        return set()
    # Not only these two runs: a suite that is back in a later one, which arrived first, is not given up.
    there = set(connection.execute(every.where(of_target, points.c.committed_at >= before)).scalars())
    return set(connection.execute(every.where(of_target)).scalars()) - there


def of_suite(
    connection: sa.Connection,
    known: SuiteNames,
    about: TargetKey,
    newest: NewestRun,
    before: str,
    aliases: Aliases = NO_ALIASES,
) -> SuiteFailures:
    """Return the failures in the newest run of a suite; `before` is the nearest of its ancestors with results.

    `aliases` are the names of tests that maintainers renamed.
    """
    target, suite = runs.target_id(connection, about), names.find(connection, about.repository, newest.suite)
    if target is None or suite is None:
        return SuiteFailures(newest.suite, newest.sha)
    series = connection.execute(
        sa.select(schema.series.c.id).filter_by(target_id=target, suite_id=suite.id)
    ).scalar_one()
    now = _statuses(connection, target, newest.suite, newest.sha)
    name_of, rows = known.every(connection, suite), _open(connection, series)
    # In C, because the column has a byte for each of up to a million tests.
    failing = list(compress(count(), now.translate(IS_FAILURE)))
    renames = series_names(connection, series, name_of, aliases, [*failing, *(row.ordinal for row in rows)])
    sides: dict[str, list[Failure]] = {"still": [], "recovered": [], "absent": []}
    reported = set()
    for row in rows:
        ordinal = renames.now(row.ordinal, (row.committed_at, row.reported_in))
        reported.add(ordinal)
        sides[_side(at(now, ordinal))].append(Failure(newest.suite, name_of[ordinal], row.since, row.good))
    began: tuple[Failure, ...] = ()
    # A failure lasts if two runs in a row saw it (docs/decisions/regression-notifications.md), so there must be two.
    if before:
        then = _statuses(connection, target, newest.suite, before)
        # Only these need their history, which takes more queries: most new failures on a device fail once.
        lasting = [
            ordinal
            for ordinal in failing
            if ordinal not in reported
            and (at(then, ordinal) in FAILS or (at(then, ordinal) == ABSENT and ordinal in renames.old_of))
        ]
        if lasting:
            chain = _chain(connection, about.repository, series, (newest.committed_at, newest.sha))
            segments = histories(connection, series, renames, chain, now, lasting)
            began = tuple(_failures(newest.suite, name_of, chain, segments))
    return SuiteFailures(newest.suite, newest.sha, began, *(tuple(sides[side]) for side in sides))


def reported(
    connection: sa.Connection, known: SuiteNames, about: TargetKey, aliases: Aliases = NO_ALIASES
) -> list[Failure]:
    """Return the reported failures of a target that have not ended, under their current names."""
    found = []
    statement = sa.select(schema.series.c.id, schema.series.c.suite_id, schema.suites.c.suite).join(schema.suites)
    for series in connection.execute(statement.filter_by(target_id=runs.target_id(connection, about))).all():
        if rows := _open(connection, series.id):
            suite = names.find(connection, about.repository, series.suite)
            assert suite is not None
            name_of = known.every(connection, suite)
            renames = series_names(connection, series.id, name_of, aliases, (row.ordinal for row in rows))
            for row in rows:
                ordinal = renames.now(row.ordinal, (row.committed_at, row.reported_in))
                found.append(Failure(series.suite, name_of[ordinal], row.since, row.good))
    return sorted(found, key=lambda one: (one.suite, one.since, one.test))


def ends(
    connection: sa.Connection, known: SuiteNames, about: TargetKey, failures: Collection[Failure]
) -> dict[Failure, FailureEnd]:
    """Return how failures of a target ended, by the names with which they were reported; others are left out."""
    table, found = schema.reports, dict[Failure, FailureEnd]()
    for series, _, ordinals, those in _placed(connection, known, about, failures):
        wanted = {(ordinals[one.test], one.since): one for one in those}
        for some in schema.in_parts(sorted({ordinal for ordinal, _ in wanted})):
            rows = connection.execute(sa.select(table).where(table.c.series_id == series, table.c.ordinal.in_(some)))
            for row in rows:
                if failure := wanted.get((row.ordinal, row.since)):
                    found[failure] = FailureEnd(row.ended, row.ended_in)
    return found


def report(
    connection: sa.Connection,
    known: SuiteNames,
    about: TargetKey,
    sha: str,
    now: float,
    began: Collection[Failure],
    ended: Mapping[str, Collection[Failure]],
    aliases: Aliases = NO_ALIASES,
) -> None:
    """Store which failures the message of a nightly run reports, and how others ended. Safe to repeat."""
    table = schema.reports
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    # If the row exists, its failure had ended and lasts after all, or the plan is applied again.
    again = {"reported_in": sha, "reported_at": now, "ended": "", "ended_in": "", "ended_at": 0.0}
    key = [table.c.series_id, table.c.ordinal, table.c.since]
    new = insert(table).on_conflict_do_update(index_elements=key, set_=again)
    for series, _, ordinals, failures in _placed(connection, known, about, began):
        values = again | {"series_id": series}
        rows = [values | {"ordinal": ordinals[one.test], "since": one.since, "good": one.good} for one in failures]
        connection.execute(new, rows)
    for how, those in ended.items():
        for series, name_of, ordinals, failures in _placed(connection, known, about, those):
            over, stored = {ordinals[one.test] for one in failures}, _open(connection, series)
            renames = series_names(connection, series, name_of, aliases, (row.ordinal for row in stored))
            for row in stored:
                if renames.now(row.ordinal, (row.committed_at, row.reported_in)) in over:
                    which = {"series_id": series, "ordinal": row.ordinal, "since": row.since}
                    connection.execute(table.update().filter_by(**which).values(ended=how, ended_in=sha, ended_at=now))


def _placed(
    connection: sa.Connection, known: SuiteNames, about: TargetKey, failures: Iterable[Failure]
) -> Iterator[tuple[int, Sequence[str], dict[str, int], list[Failure]]]:
    """Yield for each suite of some failures its series, all its names, the positions of the tests, the failures."""
    by_suite: dict[str, list[Failure]] = {}
    for one in failures:
        by_suite.setdefault(one.suite, []).append(one)
    target = runs.target_id(connection, about)
    for name, those in by_suite.items():
        suite = names.find(connection, about.repository, name)
        if suite is not None and target is not None:
            wanted, name_of = {one.test for one in those}, known.every(connection, suite)
            places = {test: place for place, test in enumerate(name_of) if test in wanted}
            series = connection.execute(
                sa.select(schema.series.c.id).filter_by(target_id=target, suite_id=suite.id)
            ).scalar_one()
            yield series, name_of, places, [one for one in those if one.test in places]


def _open(connection: sa.Connection, series: int) -> Sequence[sa.Row[Any]]:
    """Return the reports of a series that have not ended, with the moment of the commit at which each was made."""
    table, points = schema.reports, schema.points
    joined = table.outerjoin(points, sa.and_(points.c.series_id == series, points.c.sha == table.c.reported_in))
    moment = sa.func.coalesce(points.c.committed_at, 0.0).label("committed_at")
    statement = sa.select(table, moment).select_from(joined).where(table.c.series_id == series, schema.NOT_ENDED)
    return connection.execute(statement).all()


def _side(byte: int) -> str:
    if byte == ABSENT:
        return "absent"
    return "recovered" if status_of(byte) in GOOD else "still"


def _statuses(connection: sa.Connection, target: int, suite: str, sha: str) -> bytes:
    return runs.statuses(connection, [runs.stored(runs.reported(connection, target, sha, suite))])[0]


def _chain(connection: sa.Connection, repository: str, series: int, newest: Position) -> list[Position]:
    """Return the commits of a series that the newest one contains, itself included, in their order.

    If that is not stored, because no check run was computed then, all older commits count.
    """
    points = schema.points
    statement = sa.select(points.c.committed_at, points.c.sha).where(points.c.series_id == series, points.c.linked)
    ordered = statement.order_by(points.c.committed_at, points.c.sha)
    every = [(row.committed_at, row.sha) for row in connection.execute(ordered)]
    ancestors_of: dict[str, list[str]] = {}
    for one in ancestry.relations(connection, repository, {sha for _, sha in every}):
        if one.is_ancestor:
            ancestors_of.setdefault(one.sha, []).append(one.other)
    reached, waiting = {newest[1]}, [newest[1]]
    while waiting:
        for other in ancestors_of.get(waiting.pop(), ()):
            if other not in reached:
                reached.add(other)
                waiting.append(other)
    oldest = min((one for one in every if one[1] in reached), default=newest)
    return [one for one in every if one[1] in reached or one < oldest]


def _failures(
    suite: str, name_of: Sequence[str], chain: Sequence[Position], histories: Iterable[tuple[int, list[Segment]]]
) -> Iterator[Failure]:
    for ordinal, history in histories:
        found = lasting_failure(history, len(chain))
        if found is not None and not flakiness_of(history, len(chain)).explains:
            good = "" if found.good is None else chain[found.good][1]
            yield Failure(suite, name_of[ordinal], chain[found.since][1], good, is_steady(history, len(chain)))
