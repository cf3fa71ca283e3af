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
from nightjar_formats.columns import CODES, STATUS_BITS, STATUS_BYTES, duration
from nightjar_formats.model import Status

from bot.results.compare.flaky import WINDOW, flakiness_of
from bot.results.store.history.windows import TestsInWindow, window_histories
from bot.results.store.lists.listed_tests import ListedTests
from bot.results.store.tables import runs, schema
from bot.results.store.tables.blobs import raw
from bot.results.store.tables.names import SuiteNames
from bot.results.store.tables.points import (
    LinkedPoint,
    Place,
    SuiteOnTarget,
    newest_columns,
    newest_points,
    numbers_of,
    status_columns,
    stored_runs,
    suites_on_targets,
)

GOOD_RUNS = 3
"""The number of runs in a mean."""
CUT_OFFS = tuple(range(10, 101, 10))
"""In seconds."""
MOST_TESTS = 1_000

_RAN = bytes(
    0xFF if 0 < byte < STATUS_BYTES and byte & STATUS_BITS != CODES[Status.SKIPPED] else 0 for byte in range(256)
)
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

    `listed` is how many tests the list has on all pages; `runs` of each suite are counted in.
    """

    timed: int
    seconds: float
    cut_offs: list[CutOff]
    slowest: list[SlowTest]
    listed: int
    runs: int


@dataclass(frozen=True, slots=True)
class _Timed:
    one: SuiteOnTarget
    ordinal: int
    seconds: float


def durations_of(connection: sa.Connection, known: SuiteNames, asked: ListedTests) -> Durations:
    """Return how long the tests of the asked target take."""
    every = suites_on_targets(connection, asked.repository, *(asked.target or ()))
    points = newest_points(connection, {one.series for one in every}, GOOD_RUNS)
    columns = _columns(connection, every, points)
    counted = Counter[float]()
    slowest: list[_Timed] = []
    for one in every:
        combinations = list(zip(*columns[one.series], strict=True)) if columns.get(one.series) else []
        times = Counter(combinations)
        means = {combination: mean for combination in times if (mean := _mean(combination)) is not None}
        # The cut-offs count all tests, whereas the list below may be filtered by a text.
        for combination, mean in means.items():
            counted[mean] += times[combination]
        slowest += _slowest(connection, known, one, combinations, means, asked.text)
    ordered = nsmallest(MOST_TESTS, slowest, key=lambda test: (-test.seconds, test.one.suite, test.ordinal))
    shown = ordered[asked.start : asked.start + asked.limit]
    return Durations(
        counted.total(),
        sum(mean * count for mean, count in counted.items()),
        [_cut_off(counted, seconds) for seconds in CUT_OFFS],
        _with_failures(connection, known, shown, asked),
        len(ordered),
        max((len(of) for of in points.values()), default=0),
    )


def _columns(
    connection: sa.Connection, every: Sequence[SuiteOnTarget], points: dict[int, list[LinkedPoint]]
) -> dict[int, list[bytes]]:
    """Return the durations of each suite in its last good runs, 0 where a test did not run; all of one length."""
    places = {
        one.series: [(one.target_id, point.sha, one.suite) for point in points.get(one.series, ())] for one in every
    }
    stored = stored_runs(connection, [place for of in places.values() for place in of])
    statuses = status_columns(connection, numbers_of(stored))
    durations = _duration_columns(connection, stored)
    found = {}
    for series, of in places.items():
        length = max((len(statuses.get(place, b"")) for place in of), default=0)
        found[series] = [
            _masked(durations[place], statuses[place].translate(_RAN), length) for place in of if place in statuses
        ]
    return found


def _duration_columns(connection: sa.Connection, stored: dict[Place, list[runs.BareRun]]) -> dict[Place, list[bytes]]:
    table = schema.columns
    numbers = [number for of in numbers_of(stored).values() for number in of]
    blobs: dict[int, bytes] = {}
    for some in schema.in_chunks(numbers):
        wanted = table.c.run_id.in_(some)
        for row in connection.execute(sa.select(table.c.run_id, table.c.durations).where(wanted)):
            blobs[row.run_id] = raw(row.durations)
    return {place: [blobs[number] for number in of] for place, of in numbers_of(stored).items()}


def _masked(columns: Sequence[bytes], ran: bytes, length: int) -> bytes:
    """Return the durations of tests that ran; the last of several runs that timed a test counts."""
    # Each column is one large number, so that no loop runs over the tests.
    merged = 0
    for column in columns:
        timed = int.from_bytes(column.translate(_TIMED), "little")
        merged = (merged & ~timed) | int.from_bytes(column, "little")
    merged &= int.from_bytes(ran, "little")
    return merged.to_bytes(length, "little")


_TIMED = bytes(0xFF if byte else 0 for byte in range(256))


def _mean(combination: Combination) -> float | None:
    # Code 0: the test did not run there, or its duration is not known.
    seconds = [duration(code) or 0.0 for code in combination if code]
    return sum(seconds) / len(seconds) if seconds else None


def _slowest(
    connection: sa.Connection,
    known: SuiteNames,
    one: SuiteOnTarget,
    combinations: Sequence[Combination],
    means: dict[Combination, float],
    text: str,
) -> list[_Timed]:
    """Return the slowest tests of a suite, `MOST_TESTS` at least if it has so many."""
    if not means:
        return []
    if text:
        name_of = known.all(connection, one.row)
        places = [place for place in range(len(combinations)) if text in name_of[place].lower()]
    else:
        places = list(range(len(combinations)))
    times = Counter(combinations[place] for place in places)
    wanted: set[Combination] = set()
    count = 0
    # Only the slowest combinations, so that most of 300,000 tests are never sorted.
    for combination in sorted(means, key=lambda those: -means[those]):
        if count >= MOST_TESTS:
            break
        wanted.add(combination)
        count += times[combination]
    timed = [_Timed(one, place, means[combinations[place]]) for place in places if combinations[place] in wanted]
    return nsmallest(MOST_TESTS, timed, key=lambda test: (-test.seconds, test.ordinal))


def _cut_off(counted: Counter[float], seconds: int) -> CutOff:
    above = {mean: count for mean, count in counted.items() if mean > seconds}
    return CutOff(seconds, sum(above.values()), sum(mean * count for mean, count in above.items()))


def _with_failures(
    connection: sa.Connection, known: SuiteNames, shown: Sequence[_Timed], asked: ListedTests
) -> list[SlowTest]:
    every = {test.one.series: test.one for test in shown}
    columns = newest_columns(connection, every.values())
    windows = newest_points(connection, every, WINDOW)
    tests = [
        TestsInWindow(
            one,
            windows.get(series, []),
            columns.get(series, b""),
            [test.ordinal for test in shown if test.one.series == series],
        )
        for series, one in every.items()
    ]
    pasts = window_histories(connection, known, tests, asked.aliases)
    found = []
    for test in shown:
        series = test.one.series
        of = flakiness_of(pasts.get(series, {}).get(test.ordinal, []), len(windows.get(series, [])))
        name = known.all(connection, test.one.row)[test.ordinal]
        found.append(SlowTest(test.one.suite, name, test.seconds, of.failed + of.row, of.runs + of.row))
    return found
