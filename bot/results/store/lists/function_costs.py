"""What the tests of each function cost pull requests, and what they catch there and on the nightly branch.

A function is a test function with all its parameters, on all targets and in all suites: a mark above it applies to all
of them. Results under an earlier name of a test count for its present name, as far as the store or app.yaml knows it.
Reads at most `MOST_POINTS` commits of each suite on each target, some at a time, so that memory stays small.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, pairwise
from typing import TypeVar

import sqlalchemy as sa
from nightjar_formats.columns import at

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.store.lists.slow_tests import GOOD_RUNS, duration_columns, mean_seconds
from bot.results.store.tables import schema
from bot.results.store.tables.cells import IS_FAILURE, RAN, both_marked, marked_places, renamed_column
from bot.results.store.tables.names import all_names
from bot.results.store.tables.points import LinkedPoint, SuiteOnTarget, newest_points, suites_on_targets
from bot.results.store.tables.rename_pairs import renames_of
from bot.results.store.tables.runs import numbers_of, status_columns, stored_runs

MOST_POINTS = 500
"""The most commits of pull requests, and of the nightly branch, whose failures are read for each suite on a target."""
AT_ONCE = 25
"""Commits whose columns are in memory together."""
USUAL_RUNS = 3
"""A pull request runs a test if each of the newest runs for pull requests did, at most so many."""
PYTHON = ".py"


@dataclass(frozen=True, slots=True)
class FunctionName:
    """A function of a Python file, as in `tests/test_conv.py` and `TestConv::test_conv2d`.

    For a test of another language, `name` is empty and `path` is the whole test ID.
    """

    path: str
    name: str = ""

    def __str__(self) -> str:
        """Return the test ID without parameters."""
        return f"{self.path}::{self.name}" if self.name else self.path


@dataclass(slots=True)
class FunctionCost:
    """What the tests of a function cost and catch.

    `seconds` is how long they take on the nightly branch, and `pull_seconds` the part of it that pull requests run,
    each as an average over all pull requests. `failed_pulls` are the pull requests on which one of them failed,
    `caught` those where it passed on the nightly branch before. `breaks` counts how often one of them began to fail on
    the nightly branch.
    """

    seconds: float = 0.0
    pull_seconds: float = 0.0
    failed_pulls: set[int] = field(default_factory=set)
    caught: set[int] = field(default_factory=set)
    breaks: int = 0


@dataclass(frozen=True, slots=True)
class FunctionCosts:
    """The costs of all functions with a known time, and how many pull requests they are from."""

    costs: dict[FunctionName, FunctionCost]
    pulls: int


@dataclass(frozen=True, slots=True)
class _Point:
    sha: str
    committed_at: float
    pull_request: int


PointT = TypeVar("PointT", _Point, LinkedPoint)


def function_of(test: str) -> FunctionName:
    """Return the function of a test ID."""
    path, separator, name = test.partition("::")
    if not separator or not path.endswith(PYTHON):
        return FunctionName(test)
    return FunctionName(path, name.partition("[")[0])


def function_costs(
    connection: sa.Connection, repository: str, since: float, aliases: Aliases = NO_ALIASES
) -> FunctionCosts:
    """Return what the functions of a repository cost and catch since a moment, in seconds since 1970.

    `aliases` are the names of tests that maintainers renamed.
    """
    suites = suites_on_targets(connection, repository)
    renames = defaultdict[int, list[dict[int, int]]](list)
    for rename in renames_of(connection, [suite.series for suite in suites]):
        renames[rename.series_id].append(dict(rename.pairs))
    pull_points = {suite.series: _points(connection, suite, since, nightly=False) for suite in suites}
    pulls_of_target = defaultdict[int, set[int]](set)
    for suite in suites:
        pulls_of_target[suite.target_id] |= {point.pull_request for point in pull_points[suite.series]}
    pulls = {number for numbers in pulls_of_target.values() for number in numbers}
    newest = newest_points(connection, {suite.series for suite in suites}, GOOD_RUNS)
    costs = defaultdict[FunctionName, FunctionCost](FunctionCost)
    for suite in suites:
        # A target that only some pull requests run on costs the average one less.
        if not (share := len(pulls_of_target[suite.target_id]) / max(1, len(pulls))):
            continue
        names = all_names(connection, suite.row)
        functions = [function_of(name) for name in names]
        renamed = _Renamed([*renames[suite.series], _aliased(names, aliases)])
        for _, column in _columns(connection, suite, newest.get(suite.series, [])[-1:]):
            renamed.leave(column)
        ran = _usually_ran(connection, suite, pull_points[suite.series], renamed)
        durations = duration_columns(connection, [suite], newest).get(suite.series, [])
        for ordinal, numbers in enumerate(zip(*map(renamed.present, durations), strict=True)):
            if (seconds := mean_seconds(numbers)) is not None:
                cost = costs[functions[ordinal]]
                cost.seconds += seconds * share
                if ordinal < len(ran) and ran[ordinal]:
                    cost.pull_seconds += seconds * share
        _add_failures(connection, suite, functions, pull_points[suite.series], since, renamed, costs)
    return FunctionCosts({function: cost for function, cost in costs.items() if cost.seconds}, len(pulls))


class _Renamed:
    """The renames of a suite on a target, oldest first: the old ordinals of tests by the new ones."""

    def __init__(self, renames: Sequence[dict[int, int]]) -> None:
        self._renames = [pairs for pairs in renames if pairs]

    def leave(self, newest: bytes) -> None:
        """Leave out old names that a test has again in the newest results."""
        self._renames = [{new: old for new, old in pairs.items() if not at(newest, old)} for pairs in self._renames]

    def present(self, column: bytes) -> bytes:
        """Return a column of statuses or durations with tests at their present ordinals."""
        for pairs in self._renames:
            # Heads of pull requests have the names of the commit that they are based on, whatever their time is.
            moved = {new: old for new, old in pairs.items() if at(column, old) and not at(column, new)}
            column = renamed_column(column, moved)
        return column


def _aliased(names: Sequence[str], aliases: Aliases) -> dict[int, int]:
    """Return the ordinals of tests with a later name in app.yaml, by that of the later name."""
    if not aliases:
        return {}
    ordinals = {name: ordinal for ordinal, name in enumerate(names)}
    later = ((ordinals.get(aliases.canonical(name)), ordinal) for name, ordinal in ordinals.items())
    return {new: old for new, old in later if new is not None and new != old}


def _add_failures(
    connection: sa.Connection,
    suite: SuiteOnTarget,
    functions: Sequence[FunctionName],
    pull_points: Sequence[_Point],
    since: float,
    renamed: _Renamed,
    costs: defaultdict[FunctionName, FunctionCost],
) -> None:
    """Add the failures of a suite on a target since a moment to the costs of its functions."""
    nightly = list(_failing(connection, suite, _points(connection, suite, since, nightly=True), renamed))
    for (_, earlier), (_, failing) in pairwise(nightly):
        for function in {functions[ordinal] for ordinal in failing - earlier}:
            costs[function].breaks += 1
    moments = [point.committed_at for point, _ in nightly]
    for point, failing in _failing(connection, suite, pull_points, renamed):
        position = bisect_left(moments, point.committed_at)
        nightly_failing = nightly[position - 1][1] if position else frozenset()
        for ordinal in failing:
            cost = costs[functions[ordinal]]
            cost.failed_pulls.add(point.pull_request)
            if ordinal not in nightly_failing:
                cost.caught.add(point.pull_request)


def _points(connection: sa.Connection, suite: SuiteOnTarget, since: float, *, nightly: bool) -> list[_Point]:
    """Return the newest commits of a suite with complete results since a moment, oldest first."""
    points = schema.points
    of_kind = points.c.linked if nightly else points.c.pull_request.is_not(None) & ~points.c.mainline
    statement = (
        sa.select(points.c.sha, points.c.committed_at, points.c.pull_request)
        .where(points.c.series_id == suite.series, points.c.committed_at >= since)
        .where(of_kind, points.c.complete, points.c.infra == "")
        .order_by(points.c.committed_at.desc(), points.c.sha.desc())
        .limit(MOST_POINTS)
    )
    rows = list(connection.execute(statement))
    return [_Point(row.sha, row.committed_at, row.pull_request or 0) for row in reversed(rows)]


def _failing(
    connection: sa.Connection, suite: SuiteOnTarget, points: Sequence[_Point], renamed: _Renamed
) -> Iterator[tuple[_Point, frozenset[int]]]:
    """Yield each commit with the tests that fail there; a flaky test passed there as well."""
    for point, column in _columns(connection, suite, points):
        yield point, frozenset(marked_places(renamed.present(column).translate(IS_FAILURE)))


def _usually_ran(connection: sa.Connection, suite: SuiteOnTarget, points: Sequence[_Point], renamed: _Renamed) -> bytes:
    """Return a column with 1 for each test that the newest runs for pull requests ran, all of them."""
    points = points[-USUAL_RUNS:]
    columns = [renamed.present(column).translate(RAN) for _, column in _columns(connection, suite, points)]
    ran = columns[0] if columns else b""
    for column in columns[1:]:
        ran = both_marked(ran, column)
    return ran


def _columns(
    connection: sa.Connection, suite: SuiteOnTarget, points: Sequence[PointT]
) -> Iterator[tuple[PointT, bytes]]:
    remaining = iter(points)
    while chunk := list(islice(remaining, AT_ONCE)):
        stored = stored_runs(connection, [suite.place_at(point.sha) for point in chunk])
        columns = status_columns(connection, numbers_of(stored))
        yield from ((point, columns[place]) for point in chunk if (place := suite.place_at(point.sha)) in columns)
