"""The context of failures: since when a test fails, how often it failed before, and on which other targets it fails.

The number of statements does not depend on the number of failures and targets, and an index answers each.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from nightjar_formats.columns import at
from nightjar_formats.model import TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.context import FailureContext, failure_context, shows_all
from bot.results.compare.flaky import WINDOW
from bot.results.compare.lasting import Segment
from bot.results.compare.paired import UNPAIRED, PairedTargets
from bot.results.store.history.windows import TestsInWindow, names_in, window_histories
from bot.results.store.tables import schema
from bot.results.store.tables.cells import FAILS, PASSES
from bot.results.store.tables.names import ordinals_by_name
from bot.results.store.tables.points import LinkedPoint, Position, SuiteOnTarget, newest_points, suites_on_targets
from bot.results.store.tables.runs import Place, columns_at

MOST_RUNS = 400
"""Earlier runs that are read, at most: more than a year of nightly runs."""
RECENT_RUNS = 2 * WINDOW
"""Earlier runs that are read first. Most failures began in the newer half of them, and need no others."""
MOST_TARGETS = 50
"""Other targets that are read, at most; those with the newest runs come first."""
RECENT = 30 * 86400.0
"""Seconds after which the newest run of another target no longer says that a test fails there."""


# Made once, because making the statements takes longer than answering them.
_SERIES, _POINTS, _TARGETS, _CANDIDATES = schema.series, schema.points, schema.targets, schema.points.alias()
_AT_COMMITS = sa.select(_POINTS.c.series_id, _POINTS.c.committed_at, _POINTS.c.sha).where(
    _POINTS.c.series_id.in_(sa.bindparam("series", expanding=True)),
    _POINTS.c.sha.in_(sa.bindparam("shas", expanding=True)),
)
_LAST_UNTIL = (
    sa.select(_CANDIDATES.c.id)
    .where(_CANDIDATES.c.series_id == _SERIES.c.id, _CANDIDATES.c.linked)
    .where(_CANDIDATES.c.committed_at <= sa.bindparam("time"))
    .order_by(_CANDIDATES.c.committed_at.desc(), _CANDIDATES.c.sha.desc())
    .limit(1)
    .correlate(_SERIES)
    .scalar_subquery()
)
# One of the runs may be of the target of the query itself.
_OF_SUITE = (
    sa.select(_TARGETS.c.id, _TARGETS.c.lab, _TARGETS.c.target, _POINTS.c.sha)
    .where(_SERIES.c.suite_id == sa.bindparam("suite"))
    .limit(MOST_TARGETS + 1)
)
_AT_SHA = sa.and_(_POINTS.c.series_id == _SERIES.c.id, _POINTS.c.sha == sa.bindparam("sha"))
_SAME_COMMIT = _OF_SUITE.select_from(_SERIES.join(_TARGETS).join(_POINTS, _AT_SHA)).where(
    _POINTS.c.complete, _POINTS.c.infra == ""
)
"""The runs of a suite at a commit, on all targets."""
_NIGHTLY = (
    _OF_SUITE.select_from(_SERIES.join(_TARGETS).join(_POINTS, _POINTS.c.id == _LAST_UNTIL))
    .where(_POINTS.c.committed_at >= sa.bindparam("since"))
    .order_by(_POINTS.c.committed_at.desc())
)
"""The newest nightly run of a suite on each target, up to a time."""


@dataclass(frozen=True, slots=True)
class ContextQuery:
    """Failing tests of a suite, and the commit that its run was compared with; empty if there is none.

    `paired` are the simulators of the target, and the device that it simulates.
    """

    baseline: str
    tests: Collection[str]
    paired: PairedTargets = UNPAIRED


NOWHERE: Place = (0, "", "")
"""A place without runs."""


@dataclass(frozen=True, slots=True)
class TargetContextQuery:
    """Tests that fail at the commit `sha` of a suite on a target; `baseline` is as in `ContextQuery`."""

    suite: SuiteOnTarget
    sha: str
    baseline: str
    tests: Collection[str]
    paired: PairedTargets = UNPAIRED


def failure_contexts(
    connection: sa.Connection,
    target: TargetKey,
    sha: str,
    queries: Mapping[str, ContextQuery],
    aliases: Aliases = NO_ALIASES,
    most_runs: int = MOST_RUNS,
) -> dict[tuple[str, str], FailureContext]:
    """Return the contexts of failures at a commit, by suite and test; `queries` has the failures of each suite.

    At most `most_runs` earlier runs of each suite are read.
    """
    return {
        (suite, test): context
        for suite, query in queries.items()
        for test, context in contexts_of_suite(connection, target, suite, sha, query, aliases, most_runs).items()
    }


def contexts_of_suite(
    connection: sa.Connection,
    target: TargetKey,
    suite_name: str,
    sha: str,
    query: ContextQuery,
    aliases: Aliases,
    most_runs: int = MOST_RUNS,
) -> dict[str, FailureContext]:
    """Return the contexts of tests of a suite that fail at a commit on a target.

    `aliases` are the names of tests that maintainers renamed; `most_runs` is how many earlier runs are read.
    """
    for suite in suites_on_targets(connection, target.repository, target.lab, target.target, suite_name):
        target_query = TargetContextQuery(suite, sha, query.baseline, query.tests, query.paired)
        return contexts_on_targets(connection, [target_query], aliases, most_runs)[suite.series]
    return {}


def contexts_on_targets(
    connection: sa.Connection,
    queries: Sequence[TargetContextQuery],
    aliases: Aliases = NO_ALIASES,
    most_runs: int = MOST_RUNS,
) -> dict[int, dict[str, FailureContext]]:
    """Return the contexts of tests of one suite that fail on some targets, by series and test."""
    if not queries:
        return {}
    row, suite = queries[0].suite.row, queries[0].suite.name
    elsewhere = _elsewhere(connection, queries)
    baselines_of = {
        query.suite.series: (query.suite.target_id, query.baseline, suite) for query in queries if query.baseline
    }
    read = {*baselines_of.values(), *(place for newest in elsewhere.values() for place in newest)}
    columns = columns_at(connection, read)
    ordinals = ordinals_by_name(connection, row)
    tests = {
        query.suite.series: {ordinals[test]: test for test in query.tests if test in ordinals} for query in queries
    }
    last_columns = {
        query.suite.series: columns.get(baselines_of.get(query.suite.series, NOWHERE), b"") for query in queries
    }
    earlier = _read_earlier(connection, queries, tests, last_columns, aliases, min(most_runs, RECENT_RUNS))
    if most_runs > RECENT_RUNS:
        unclear: dict[int, list[int]] = {}
        for (series, ordinal), runs in earlier.items():
            if runs.older and not shows_all(runs.history, len(runs.shas)):
                unclear.setdefault(series, []).append(ordinal)
        of_unclear = [query for query in queries if query.suite.series in unclear]
        earlier |= _read_earlier(connection, of_unclear, unclear, last_columns, aliases, most_runs)
    paired = {query.suite.series: query.paired for query in queries}

    def targets_with(series: int, ordinal: int, statuses: Collection[int]) -> list[str]:
        return [name for place, name in elsewhere[series].items() if at(columns.get(place, b""), ordinal) in statuses]

    return {
        series: {
            test: failure_context(
                runs.history,
                runs.shas,
                older=runs.older,
                also_on=targets_with(series, ordinal, FAILS),
                passes_on=paired[series].passes(targets_with(series, ordinal, PASSES))
                if paired[series].names
                else ((), ""),
            )
            for ordinal, test in tests_of_series.items()
            for runs in (earlier[series, ordinal],)
        }
        for series, tests_of_series in tests.items()
    }


@dataclass(frozen=True, slots=True)
class _EarlierRuns:
    """The history of a test over runs before its failure, whose commits are `shas`; whether there are `older` runs."""

    shas: Sequence[str]
    history: Sequence[Segment]
    older: bool


def _read_earlier(
    connection: sa.Connection,
    queries: Sequence[TargetContextQuery],
    tests: Mapping[int, Collection[int]],
    columns: Mapping[int, bytes],
    aliases: Aliases,
    most_runs: int,
) -> dict[tuple[int, int], _EarlierRuns]:
    """Return the last runs of tests up to the baseline of their series, at most `most_runs`, by series and test.

    `columns` has the status column of each baseline.
    """
    # One more is read, only to see whether there are older ones.
    points = _earlier_points(connection, queries, most_runs + 1)
    windows = {query.suite.series: points.get(query.suite.series, [])[-most_runs:] for query in queries}
    # Without aliases, each test has had its name.
    places = {query.suite.series: query.suite.place_at(query.sha) for query in queries if aliases}
    now = columns_at(connection, places.values()) if places else {}
    names_then = {
        series: names_in(
            connection, query.suite.row, aliases, columns[series], tests[series], now.get(places[series], b"")
        )
        if aliases
        else {ordinal: ordinal for ordinal in tests[series]}
        for query in queries
        for series in (query.suite.series,)
    }
    in_window = [
        TestsInWindow(query.suite, windows[series], columns[series], list({*names_then[series].values()}))
        for query in queries
        for series in (query.suite.series,)
    ]
    histories = window_histories(connection, in_window, aliases)
    earlier = {}
    for series, window in windows.items():
        shas, older = [point.sha for point in window], len(points.get(series, ())) > most_runs
        for ordinal, name in names_then[series].items():
            earlier[series, ordinal] = _EarlierRuns(shas, histories.get(series, {}).get(name, ()), older)
    return earlier


def _positions(connection: sa.Connection, queries: Sequence[TargetContextQuery]) -> dict[int, Position]:
    """Return the position of the commit of each query in its series; series without the commit are left out."""
    sha_of = {query.suite.series: query.sha for query in queries}
    parameters = {"series": list(sha_of), "shas": list({*sha_of.values()})}
    # The statement also finds commits of other queries.
    return {
        row.series_id: (row.committed_at, row.sha)
        for row in connection.execute(_AT_COMMITS, parameters)
        if row.sha == sha_of[row.series_id]
    }


def _earlier_points(
    connection: sa.Connection, queries: Sequence[TargetContextQuery], most_runs: int
) -> dict[int, list[LinkedPoint]]:
    """Return the last runs of each series up to its baseline, in their order."""
    with_baseline = defaultdict[str, list[int]](list)
    for query in queries:
        if query.baseline:
            with_baseline[query.baseline].append(query.suite.series)
    points = dict[int, list[LinkedPoint]]()
    for baseline, series in with_baseline.items():
        points |= newest_points(connection, series, most_runs, until=baseline)
    return points


def _elsewhere(connection: sa.Connection, queries: Sequence[TargetContextQuery]) -> dict[int, dict[Place, str]]:
    """Return the newest run of the suite on each other target, up to a commit, with the name of the target, by series.

    A run of the same commit comes first, whether it is on the nightly branch or not.
    """
    elsewhere: dict[int, dict[Place, str]] = {query.suite.series: {} for query in queries}
    at_position = defaultdict[Position, list[SuiteOnTarget]](list)
    positions = _positions(connection, queries)
    for query in queries:
        if query.suite.series in positions:
            at_position[positions[query.suite.series]].append(query.suite)
    for position, suites in at_position.items():
        committed_at, sha = position
        times = {"time": committed_at, "since": committed_at - RECENT}
        of_suite = {"suite": suites[0].row.id}
        lists = [
            connection.execute(_SAME_COMMIT, of_suite | {"sha": sha}).all(),
            connection.execute(_NIGHTLY, of_suite | times).all(),
        ]
        for suite in suites:
            newest: dict[int, tuple[str, str]] = {}
            # The same commit first: `setdefault` keeps the first run of each target.
            for rows in lists:
                for row in [row for row in rows if row.id != suite.target_id][:MOST_TARGETS]:
                    newest.setdefault(row.id, (row.sha, f"{row.lab}/{row.target}"))
            by_name = sorted(newest.items(), key=lambda target_run: target_run[1][1])[:MOST_TARGETS]
            elsewhere[suite.series] = {(number, sha, suite.name): name for number, (sha, name) in by_name}
    return elsewhere
