"""Lasting failures of targets: which tests fail, since when, what was reported about them, and how that ended.

`aliases` are the names of tests that maintainers renamed. Times are in seconds since 1970.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import compress, count
from typing import Any

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, at, status_of
from nightjar_formats.model import GOOD, SeenTest, Status, TargetKey
from sqlalchemy.dialects import postgresql, sqlite

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.context import FailureContext
from bot.results.compare.flaky import flakiness_of
from bot.results.compare.lasting import Segment, is_steady, lasting_failure
from bot.results.store.failures.contexts import ContextQuery, contexts_of_suite
from bot.results.store.history.baselines import baselines
from bot.results.store.history.flakiness import known_flaky_tests
from bot.results.store.history.series_names import series_names
from bot.results.store.history.windows import histories
from bot.results.store.tables import ancestry, names, revisions, runs, schema
from bot.results.store.tables.cells import FAILS, IS_FAILURE
from bot.results.store.tables.names import all_names, find_ordinal
from bot.results.store.tables.points import Position

RECOVERED = "recovered"
"""How a failure ended whose test passes again. Other ends, such as a removed test, are no fix."""


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


@dataclass(frozen=True, slots=True)
class FailingTest:
    """A test that fails in the newest nightly run of its suite, the commit `sha`.

    `known_flaky`: its known flakiness explains that.
    """

    suite: str
    test: str
    sha: str
    context: FailureContext
    known_flaky: bool = False


@dataclass(frozen=True, slots=True)
class FailureMessage:
    """A message about a lasting failure of a test, and how the failure ended.

    The failure began at the commit `since`; the test last passed at `good`, which is empty if it never did. The run of
    `reported_in` led to the message. `ended` is empty while the failure lasts. Times are in seconds since 1970.
    """

    since: str
    good: str
    reported_in: str
    reported_at: float
    ended: str
    ended_in: str
    ended_at: float


@dataclass(frozen=True, slots=True)
class RegressionMessage:
    """A message about a lasting failure, with its target, suite and test."""

    target: TargetKey
    suite: str
    test: str
    message: FailureMessage


def late_run(connection: sa.Connection, target: TargetKey, sha: str) -> tuple[str, float] | None:
    """Return the older nightly commit whose results arrived last, if any arrived after those of a commit.

    The second value is the time of that older commit.
    """
    table = schema.runs
    target_id = runs.target_id(connection, target)
    arrived_at, committed_at = connection.execute(
        sa.select(sa.func.min(table.c.received_at), sa.func.min(table.c.committed_at)).filter_by(
            target_id=target_id, sha=sha
        )
    ).one()
    row = connection.execute(
        sa.select(table.c.sha, table.c.committed_at)
        .where(table.c.target_id == target_id, table.c.received_at > arrived_at)
        .where(table.c.mainline, table.c.committed_at < committed_at)
        .order_by(table.c.received_at.desc())
        .limit(1)
    ).first()
    return (row.sha, row.committed_at) if row is not None else None


def commit_times_of(connection: sa.Connection, target: TargetKey, shas: Collection[str]) -> dict[str, float]:
    """Return when the commits that a target tested were made."""
    table = schema.runs
    times = dict[str, float]()
    target_id = runs.target_id(connection, target)
    for chunk in schema.in_chunks(sorted(shas)):
        statement = (
            sa.select(table.c.sha, sa.func.min(table.c.committed_at).label("committed_at"))
            .where(table.c.target_id == target_id, table.c.sha.in_(chunk), table.c.committed_at.is_not(None))
            .group_by(table.c.sha)
        )
        times |= {row.sha: row.committed_at for row in connection.execute(statement)}
    return times


def given_up_suites(connection: sa.Connection, target: TargetKey, sha: str) -> set[str]:
    """Return the suites without results at a nightly commit, at the one before, and at all later ones."""
    points, series, suites = schema.points, schema.series, schema.suites
    of_target = sa.and_(series.c.target_id == runs.target_id(connection, target), points.c.mainline)
    select_suites = sa.select(suites.c.suite, points.c.committed_at, points.c.sha).select_from(
        points.join(series).join(suites, series.c.suite_id == suites.c.id)
    )
    committed_at = connection.execute(
        sa.select(sa.func.min(points.c.committed_at))
        .select_from(points.join(series))
        .where(of_target, points.c.sha == sha)
    ).scalar()
    previous = connection.execute(
        sa.select(sa.func.max(points.c.committed_at))
        .select_from(points.join(series))
        .where(of_target, points.c.committed_at < committed_at)
    ).scalar()
    if committed_at is None or previous is None:
        return set()
    # Not only these two commits: a suite that is back in a later one, which arrived first, is not given up.
    recent = set(connection.execute(select_suites.where(of_target, points.c.committed_at >= previous)).scalars())
    return set(connection.execute(select_suites.where(of_target)).scalars()) - recent


def failures_of_target(
    connection: sa.Connection, target: TargetKey, ancestors: Mapping[str, str], aliases: Aliases = NO_ALIASES
) -> list[SuiteFailures]:
    """Return the failures in the newest run of each suite.

    `ancestors` has the nearest ancestor with results of that run, by suite; without one, no failure has begun.
    """
    return [
        _suite_failures(connection, target, run, ancestors.get(run.suite, ""), aliases)
        for run in newest_runs(connection, target)
    ]


def failing_tests(
    connection: sa.Connection, target: TargetKey, limit: int, aliases: Aliases = NO_ALIASES
) -> tuple[list[FailingTest], int]:
    """Return tests that fail in the newest nightly runs of a target, at most `limit`, and how many fail in all."""
    tests = list[FailingTest]()
    target_id, newest = runs.target_id(connection, target), newest_runs(connection, target)
    for run in sorted(newest, key=lambda run: run.suite):
        suite, room = names.find(connection, target.repository, run.suite), limit - len(tests)
        if target_id is None or suite is None or not run.failing or room <= 0:
            continue
        column = _statuses(connection, target_id, run.suite, run.sha)
        name_of = all_names(connection, suite)
        failing = sorted(name_of[ordinal] for ordinal, byte in enumerate(column) if byte in FAILS)[:room]
        candidates = baselines(connection, target, run.suite, run.sha, 1)
        query = ContextQuery(candidates[0].sha if candidates else "", failing)
        context_of = contexts_of_suite(connection, target, run.suite, run.sha, query, aliases)
        failures = {test: SeenTest(Status.FAILED) for test in failing}
        flaky = known_flaky_tests(connection, target, run.suite, run.sha, failures, aliases)
        tests += [FailingTest(run.suite, test, run.sha, context_of[test], test in flaky) for test in failing]
    return tests, sum(run.failing for run in newest)


def reported_failures(connection: sa.Connection, target: TargetKey, aliases: Aliases = NO_ALIASES) -> list[Failure]:
    """Return the reported failures of a target that have not ended, under the tests' current names."""
    failures = []
    statement = sa.select(schema.series.c.id, schema.series.c.suite_id, schema.suites.c.suite).join(schema.suites)
    target_id = runs.target_id(connection, target)
    for series in connection.execute(statement.filter_by(target_id=target_id)).all():
        if reports := _open_reports(connection, series.id):
            suite = names.find(connection, target.repository, series.suite)
            assert suite is not None
            name_of = all_names(connection, suite)
            ordinals = (report.ordinal for report in reports)
            renames = series_names(connection, series.id, name_of, aliases, ordinals)
            for report in reports:
                ordinal = renames.now(report.ordinal, (report.committed_at, report.reported_in))
                failures.append(Failure(series.suite, name_of[ordinal], report.since, report.good))
    return sorted(failures, key=lambda failure: (failure.suite, failure.since, failure.test))


def failure_ends(
    connection: sa.Connection, target: TargetKey, reported: Collection[Failure]
) -> dict[Failure, FailureEnd]:
    """Return how reported failures of a target ended; those that were never reported are left out.

    Tests have the names with which their failures were reported.
    """
    table, end_of = schema.reports, dict[Failure, FailureEnd]()
    for series, _, ordinals, failures in _by_series(connection, target, reported):
        failure_at = {(ordinals[failure.test], failure.since): failure for failure in failures}
        for chunk in schema.in_chunks(sorted({ordinal for ordinal, _ in failure_at})):
            statement = sa.select(table).where(table.c.series_id == series, table.c.ordinal.in_(chunk))
            for report in connection.execute(statement):
                if failure := failure_at.get((report.ordinal, report.since)):
                    end_of[failure] = FailureEnd(report.ended, report.ended_in)
    return end_of


def store_reports(
    connection: sa.Connection,
    target: TargetKey,
    sha: str,
    moment: float,
    began: Collection[Failure],
    ended: Mapping[str, Collection[Failure]],
    aliases: Aliases = NO_ALIASES,
) -> None:
    """Store which failures a nightly run's message reports, and how others ended. Safe to repeat.

    `ended` has the failures by how they ended. `moment` is when the message is sent, in seconds since 1970.
    """
    table = schema.reports
    # If the row exists, its failure had ended and lasts after all, or the plan is applied again.
    values = {"reported_in": sha, "reported_at": moment, "ended": "", "ended_in": "", "ended_at": 0.0}
    key = [table.c.series_id, table.c.ordinal, table.c.since]
    insert = postgresql.insert if connection.dialect.name == "postgresql" else sqlite.insert
    upsert = insert(table).on_conflict_do_update(index_elements=key, set_=values)
    for series, _, ordinals, failures in _by_series(connection, target, began):
        rows = [
            {
                **values,
                "series_id": series,
                "ordinal": ordinals[failure.test],
                "since": failure.since,
                "good": failure.good,
            }
            for failure in failures
        ]
        connection.execute(upsert, rows)
    for how, failures_ended in ended.items():
        for series, name_of, ordinals, failures in _by_series(connection, target, failures_ended):
            ended_ordinals = {ordinals[failure.test] for failure in failures}
            reports = _open_reports(connection, series)
            renames = series_names(connection, series, name_of, aliases, (row.ordinal for row in reports))
            for row in reports:
                if renames.now(row.ordinal, (row.committed_at, row.reported_in)) in ended_ordinals:
                    statement = table.update().filter_by(series_id=series, ordinal=row.ordinal, since=row.since)
                    connection.execute(statement.values(ended=how, ended_in=sha, ended_at=moment))
    # Pages show these messages, and are rendered again only after the revision has grown.
    revisions.grow(connection, target.repository)


def failure_messages(
    connection: sa.Connection, target: TargetKey, suite: str, test_names: Collection[str]
) -> list[FailureMessage]:
    """Return the messages about a test, oldest first; `test_names` are all names that it had."""
    table, series = schema.reports, schema.series
    row = names.find(connection, target.repository, suite)
    if row is None:
        return []
    ordinals = [find_ordinal(connection, row, name) for name in test_names]
    target_id = runs.target_id(connection, target)
    statement = (
        sa.select(table)
        .where(table.c.series_id.in_(sa.select(series.c.id).filter_by(suite_id=row.id, target_id=target_id)))
        .where(table.c.ordinal.in_([ordinal for ordinal in ordinals if ordinal is not None]))
        .order_by(table.c.reported_at, table.c.since)
    )
    return [_message(report) for report in connection.execute(statement).mappings()]


def newest_messages(connection: sa.Connection, repository: str, since: float, limit: int) -> list[RegressionMessage]:
    """Return the newest messages about tests of a repository since a moment, newest first."""
    table, series, suites, targets = schema.reports, schema.series, schema.suites, schema.targets
    newer = table.alias()
    # No older message is listed: one series alone has `limit` newer ones, and those of others only add to them.
    oldest_listed = (
        sa.select(newer.c.reported_at)
        .where(newer.c.series_id == series.c.id)
        .order_by(newer.c.reported_at.desc())
        .limit(1)
        .offset(limit - 1)
        .correlate(series)
        .scalar_subquery()
    )
    joined = suites.join(series, series.c.suite_id == suites.c.id).join(targets)
    statement = (
        sa.select(suites.c.id, suites.c.names, suites.c.suite, targets.c.lab, targets.c.target, table.c.ordinal)
        .add_columns(*(table.c[name] for name in FailureMessage.__dataclass_fields__))
        .select_from(joined.join(table, table.c.series_id == series.c.id))
        .where(suites.c.repository == repository, table.c.reported_at >= sa.func.coalesce(oldest_listed, since))
        .where(table.c.reported_at >= since)
        .order_by(table.c.reported_at.desc(), table.c.series_id, table.c.ordinal)
        .limit(limit)
    )
    messages = [
        (names.SuiteRow(number, count), suite, TargetKey(repository, lab, target), ordinal, FailureMessage(*message))
        for number, count, suite, lab, target, ordinal, *message in connection.execute(statement).all()
    ]
    tests: dict[names.SuiteRow, dict[int, str]] = {row: {} for row, *_ in messages}
    for row, _, _, ordinal, _ in messages:
        tests[row][ordinal] = ""
    for row, name_at in tests.items():
        # Once for each suite, because the names of a large one are not cached.
        name_of = all_names(connection, row)
        name_at.update((ordinal, name_of[ordinal]) for ordinal in name_at)
    return [
        RegressionMessage(target, suite, tests[row][ordinal], message)
        for row, suite, target, ordinal, message in messages
    ]


def _message(row: sa.RowMapping) -> FailureMessage:
    return FailureMessage(**{name: row[name] for name in FailureMessage.__dataclass_fields__})


def newest_runs(connection: sa.Connection, target: TargetKey) -> list[NewestRun]:
    """Return the newest run of each suite of a target, the newest of them first."""
    points, target_id = schema.points, runs.target_id(connection, target)
    if target_id is None:
        return []
    suites = sa.select(schema.series.c.id, schema.suites.c.suite).join(schema.suites)
    newest = []
    for series, suite in connection.execute(suites.where(schema.series.c.target_id == target_id)).all():
        row = connection.execute(
            sa.select(points.c.sha, points.c.committed_at)
            .where(points.c.series_id == series, points.c.linked)
            .order_by(points.c.committed_at.desc(), points.c.sha.desc())
            .limit(1)
        ).first()
        if row is not None:
            failing = sum(_statuses(connection, target_id, suite, row.sha).translate(IS_FAILURE))
            newest.append(NewestRun(suite, row.sha, row.committed_at, failing))
    return sorted(newest, key=lambda run: (run.committed_at, run.sha, run.suite), reverse=True)


def _suite_failures(
    connection: sa.Connection, target: TargetKey, newest: NewestRun, ancestor: str, aliases: Aliases
) -> SuiteFailures:
    """Return the failures in the newest run of a suite; `ancestor` is its nearest ancestor with results, or empty."""
    target_id, suite = runs.target_id(connection, target), names.find(connection, target.repository, newest.suite)
    if target_id is None or suite is None:
        return SuiteFailures(newest.suite, newest.sha)
    series = connection.execute(
        sa.select(schema.series.c.id).filter_by(target_id=target_id, suite_id=suite.id)
    ).scalar_one()
    column = _statuses(connection, target_id, newest.suite, newest.sha)
    name_of, reports = all_names(connection, suite), _open_reports(connection, series)
    # In C, because the column has a byte for each of up to a million tests.
    failing = list(compress(count(), column.translate(IS_FAILURE)))
    renames = series_names(connection, series, name_of, aliases, [*failing, *(report.ordinal for report in reports)])
    sides: dict[str, list[Failure]] = {"still": [], "recovered": [], "absent": []}
    reported = set()
    for report in reports:
        ordinal = renames.now(report.ordinal, (report.committed_at, report.reported_in))
        reported.add(ordinal)
        sides[_side(at(column, ordinal))].append(Failure(newest.suite, name_of[ordinal], report.since, report.good))
    began: tuple[Failure, ...] = ()
    # A failure lasts if two runs in a row had it (docs/decisions/regression-notifications.md), so there must be two.
    if ancestor:
        ancestor_column = _statuses(connection, target_id, newest.suite, ancestor)
        # Only these need their history, which takes more queries: most new failures on a device fail once.
        lasting = [
            ordinal
            for ordinal in failing
            if ordinal not in reported
            and ((byte := at(ancestor_column, ordinal)) in FAILS or (byte == ABSENT and ordinal in renames.old_of))
        ]
        if lasting:
            chain = _ancestors(connection, target.repository, series, (newest.committed_at, newest.sha))
            segments = histories(connection, series, renames, chain, column, lasting)
            began = tuple(_lasting_failures(newest.suite, name_of, chain, segments))
    return SuiteFailures(newest.suite, newest.sha, began, *(tuple(failures) for failures in sides.values()))


def _side(byte: int) -> str:
    """Return the field of `SuiteFailures` for a reported failure, by the test's status byte in the newest run."""
    if byte == ABSENT:
        return "absent"
    return "recovered" if status_of(byte) in GOOD else "still"


def _by_series(
    connection: sa.Connection, target: TargetKey, failures: Iterable[Failure]
) -> Iterator[tuple[int, Sequence[str], dict[str, int], list[Failure]]]:
    """Group failures by suite: yield the suite's series, all its names, the ordinals of the tests, and the failures.

    Failures of suites and tests without results are left out.
    """
    by_suite: dict[str, list[Failure]] = {}
    for failure in failures:
        by_suite.setdefault(failure.suite, []).append(failure)
    target_id = runs.target_id(connection, target)
    for name, of_suite in by_suite.items():
        suite = names.find(connection, target.repository, name)
        if suite is not None and target_id is not None:
            tests, name_of = {failure.test for failure in of_suite}, all_names(connection, suite)
            ordinals = {test: ordinal for ordinal, test in enumerate(name_of) if test in tests}
            series = connection.execute(
                sa.select(schema.series.c.id).filter_by(target_id=target_id, suite_id=suite.id)
            ).scalar_one()
            yield series, name_of, ordinals, [failure for failure in of_suite if failure.test in ordinals]


def _open_reports(connection: sa.Connection, series: int) -> Sequence[sa.Row[Any]]:
    """Return the reports of a series that have not ended, each with the time of the commit that it was made for."""
    table, points = schema.reports, schema.points
    joined = table.outerjoin(points, sa.and_(points.c.series_id == series, points.c.sha == table.c.reported_in))
    committed_at = sa.func.coalesce(points.c.committed_at, 0.0).label("committed_at")
    statement = sa.select(table, committed_at).select_from(joined).where(table.c.series_id == series, schema.NOT_ENDED)
    return connection.execute(statement).all()


def _statuses(connection: sa.Connection, target_id: int, suite: str, sha: str) -> bytes:
    """Return the merged status column of a suite at a commit."""
    return runs.suite_columns(connection, target_id, suite, [sha])[0]


def _ancestors(connection: sa.Connection, repository: str, series: int, newest: Position) -> list[Position]:
    """Return the commits of a series that its newest commit contains, itself included, in their order.

    Commits older than all known ancestors count as ancestors. So all older commits count if no ancestors are stored,
    because no check run was computed then.
    """
    points = schema.points
    statement = sa.select(points.c.committed_at, points.c.sha).where(points.c.series_id == series, points.c.linked)
    ordered = statement.order_by(points.c.committed_at, points.c.sha)
    positions = [(row.committed_at, row.sha) for row in connection.execute(ordered)]
    ancestors_of: dict[str, list[str]] = {}
    for relation in ancestry.relations(connection, repository, {sha for _, sha in positions}):
        if relation.is_ancestor:
            ancestors_of.setdefault(relation.sha, []).append(relation.other)
    reached, waiting = {newest[1]}, [newest[1]]
    while waiting:
        for sha in ancestors_of.get(waiting.pop(), ()):
            if sha not in reached:
                reached.add(sha)
                waiting.append(sha)
    oldest = min((position for position in positions if position[1] in reached), default=newest)
    return [position for position in positions if position[1] in reached or position < oldest]


def _lasting_failures(
    suite: str, name_of: Sequence[str], chain: Sequence[Position], histories: Iterable[tuple[int, list[Segment]]]
) -> Iterator[Failure]:
    """Yield the failures that last and that flakiness does not explain, by the histories of tests over a chain."""
    for ordinal, history in histories:
        lasting = lasting_failure(history, len(chain))
        if lasting is not None and not flakiness_of(history, len(chain)).explains:
            good = "" if lasting.good is None else chain[lasting.good][1]
            yield Failure(suite, name_of[ordinal], chain[lasting.since][1], good, is_steady(history, len(chain)))
