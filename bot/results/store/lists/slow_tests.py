"""Find slow tests of a target, and compute how much time it saves to skip those above a cut-off (TVM's RFC 0055).

A duration is the mean over the last good runs in which a test ran. A mean is computed once for each combination of
durations that occurs, not for each test: a suite may have 300,000.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import nsmallest

import sqlalchemy as sa
from nightjar_formats.columns import duration

from bot.results.compare.flaky import WINDOW, flakiness_of
from bot.results.store.history.windows import TestsInWindow, window_histories
from bot.results.store.lists.listed_tests import ListedTests
from bot.results.store.tables import runs, schema
from bot.results.store.tables.blobs import raw
from bot.results.store.tables.cells import RAN
from bot.results.store.tables.names import all_names
from bot.results.store.tables.points import LinkedPoint, SuiteOnTarget, newest_columns, newest_points, suites_on_targets
from bot.results.store.tables.runs import Place, numbers_of, status_columns, stored_runs

GOOD_RUNS = 3
"""The number of runs in a mean."""
CUT_OFFS = tuple(range(10, 101, 10))
"""In seconds."""
MOST_TESTS = 1_000

_RAN = bytes(0xFF * ran for ran in RAN)
"""Translates a status column into 0xFF for tests that ran, and 0 for others."""
_TIMED = bytes(0xFF if byte else 0 for byte in range(256))
"""Translates a duration column into 0xFF for tests with a duration, and 0 for others."""
Combination = tuple[int, ...]
"""The numbers that stand for the durations of a test in the last good runs."""


@dataclass(frozen=True, slots=True)
class SlowTest:
    """A test, how many seconds it takes, and how many of its last `runs` runs failed."""

    suite: str
    test: str
    seconds: float
    failed: int
    runs: int


@dataclass(frozen=True, slots=True)
class CutOff:
    """A cut-off: how many tests take longer, and how many seconds it saves to skip them."""

    seconds: int
    tests: int
    saved: float


@dataclass(frozen=True, slots=True)
class Durations:
    """How long the tests of a target take: those that reported it, their seconds in all, and some of the slowest.

    `listed` is how many tests the list has on all pages. The means are over the last `runs` runs of each suite.
    """

    timed: int
    seconds: float
    cut_offs: list[CutOff]
    slowest: list[SlowTest]
    listed: int
    runs: int


@dataclass(frozen=True, slots=True)
class _Timed:
    suite: SuiteOnTarget
    ordinal: int
    seconds: float


def durations_of(connection: sa.Connection, query: ListedTests) -> Durations:
    """Return how long the tests of a target take."""
    suites = suites_on_targets(connection, query.repository, *(query.target or ()))
    points = newest_points(connection, {suite.series for suite in suites}, GOOD_RUNS)
    columns = duration_columns(connection, suites, points)
    tests_by_mean = Counter[float]()
    slowest: list[_Timed] = []
    for suite in suites:
        combinations = list(zip(*columns[suite.series], strict=True)) if columns.get(suite.series) else []
        times = Counter(combinations)
        means = {combination: mean for combination in times if (mean := mean_seconds(combination)) is not None}
        # The cut-offs count all tests, whereas the list below may be filtered by a text.
        for combination, mean in means.items():
            tests_by_mean[mean] += times[combination]
        slowest += _slowest(connection, suite, combinations, means, query.text)
    ordered = nsmallest(MOST_TESTS, slowest, key=lambda test: (-test.seconds, test.suite.name, test.ordinal))
    page = ordered[query.start : query.start + query.limit]
    return Durations(
        tests_by_mean.total(),
        sum(mean * count for mean, count in tests_by_mean.items()),
        [_cut_off(tests_by_mean, seconds) for seconds in CUT_OFFS],
        _with_failures(connection, page, query),
        len(ordered),
        max((len(suite_points) for suite_points in points.values()), default=0),
    )


def duration_columns(
    connection: sa.Connection, suites: Sequence[SuiteOnTarget], points: dict[int, list[LinkedPoint]]
) -> dict[int, list[bytes]]:
    """Return a duration column for each of a suite's last good commits, by series, 0 where a test did not run.

    All columns of a suite have one length.
    """
    places = {suite.series: [suite.place_at(point.sha) for point in points.get(suite.series, ())] for suite in suites}
    stored = stored_runs(connection, [place for suite_places in places.values() for place in suite_places])
    statuses = status_columns(connection, numbers_of(stored))
    durations = _duration_columns(connection, stored)
    columns = {}
    for series, suite_places in places.items():
        length = max((len(statuses.get(place, b"")) for place in suite_places), default=0)
        columns[series] = [
            _merged_durations(durations[place], statuses[place].translate(_RAN), length)
            for place in suite_places
            if place in statuses
        ]
    return columns


def _duration_columns(connection: sa.Connection, stored: dict[Place, list[runs.BareRun]]) -> dict[Place, list[bytes]]:
    """Return the duration columns of the runs at each place, in their order."""
    table = schema.columns
    numbers = [number for place_runs in numbers_of(stored).values() for number in place_runs]
    blobs: dict[int, bytes] = {}
    for chunk in schema.in_chunks(numbers):
        of_runs = table.c.run_id.in_(chunk)
        for row in connection.execute(sa.select(table.c.run_id, table.c.durations).where(of_runs)):
            blobs[row.run_id] = raw(row.durations)
    return {place: [blobs[number] for number in place_runs] for place, place_runs in numbers_of(stored).items()}


def _merged_durations(columns: Sequence[bytes], ran: bytes, length: int) -> bytes:
    """Merge the duration columns of the runs of one suite at one commit, such as its shards, in their order.

    A column has one byte for each test: `nightjar_formats.columns.duration` reads it. If several runs timed a test, the
    last one counts. `ran` is 0xFF for tests that ran and 0 for others, whose durations become 0. The result has
    `length` bytes.
    """
    # Each column is one large number, so that no loop runs over the tests.
    merged = 0
    for column in columns:
        timed = int.from_bytes(column.translate(_TIMED), "little")
        merged = (merged & ~timed) | int.from_bytes(column, "little")
    merged &= int.from_bytes(ran, "little")
    return merged.to_bytes(length, "little")


def mean_seconds(combination: Combination) -> float | None:
    """Return the mean of the durations that a test's numbers stand for; None if none is known."""
    # Code 0: the test did not run there, or its duration is not known.
    seconds = [duration(code) or 0.0 for code in combination if code]
    return sum(seconds) / len(seconds) if seconds else None


def _slowest(
    connection: sa.Connection,
    suite: SuiteOnTarget,
    combinations: Sequence[Combination],
    means: dict[Combination, float],
    text: str,
) -> list[_Timed]:
    """Return the slowest tests of a suite, at most `MOST_TESTS`."""
    if not means:
        return []
    if text:
        name_of = all_names(connection, suite.row)
        ordinals = [ordinal for ordinal in range(len(combinations)) if text in name_of[ordinal].lower()]
    else:
        ordinals = list(range(len(combinations)))
    times = Counter(combinations[ordinal] for ordinal in ordinals)
    slowest_combinations: set[Combination] = set()
    count = 0
    # Only the slowest combinations, so that most of 300,000 tests are never sorted.
    for combination in sorted(means, key=lambda combination: -means[combination]):
        if count >= MOST_TESTS:
            break
        slowest_combinations.add(combination)
        count += times[combination]
    timed = [
        _Timed(suite, ordinal, means[combinations[ordinal]])
        for ordinal in ordinals
        if combinations[ordinal] in slowest_combinations
    ]
    return nsmallest(MOST_TESTS, timed, key=lambda test: (-test.seconds, test.ordinal))


def _cut_off(tests_by_mean: Counter[float], seconds: int) -> CutOff:
    above = {mean: count for mean, count in tests_by_mean.items() if mean > seconds}
    return CutOff(seconds, sum(above.values()), sum(mean * count for mean, count in above.items()))


def _with_failures(connection: sa.Connection, page: Sequence[_Timed], query: ListedTests) -> list[SlowTest]:
    """Add to the tests of a page how many of their last runs failed."""
    suites = {test.suite.series: test.suite for test in page}
    columns = newest_columns(connection, suites.values())
    windows = newest_points(connection, suites, WINDOW)
    tests = [
        TestsInWindow(
            suite,
            windows.get(series, []),
            columns.get(series, b""),
            [test.ordinal for test in page if test.suite.series == series],
        )
        for series, suite in suites.items()
    ]
    histories = window_histories(connection, tests, query.aliases)
    slow_tests = []
    for test in page:
        series = test.suite.series
        flakiness = flakiness_of(histories.get(series, {}).get(test.ordinal, []), len(windows.get(series, [])))
        name = all_names(connection, test.suite.row)[test.ordinal]
        slow_tests.append(
            SlowTest(
                test.suite.name, name, test.seconds, flakiness.failed + flakiness.row, flakiness.runs + flakiness.row
            )
        )
    return slow_tests
