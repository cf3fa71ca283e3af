"""The tests of a repository that are flaky, with the commits that prove it.

Changes between runs say which tests may be flaky, for all targets in one statement; only the few tests that a page
shows are followed from run to run.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from heapq import nlargest

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, FLAKY, STATUS_BYTES, at, is_flaky, is_flip
from nightjar_formats.model import TargetKey

from bot.core.aliases import Aliases
from bot.results.compare.flaky import WINDOW, flakiness_of
from bot.results.store.history.series_names import series_names
from bot.results.store.history.windows import TestsInWindow, outcomes, window_histories
from bot.results.store.lists.listed_tests import ListedTests
from bot.results.store.tables import schema
from bot.results.store.tables.cells import marked_places
from bot.results.store.tables.names import all_names
from bot.results.store.tables.points import LinkedPoint, SuiteOnTarget, newest_columns, newest_points, suites_on_targets
from bot.results.store.tables.runs import stored_runs

IS_FLAKY = bytes(byte > FLAKY and is_flaky(byte) for byte in range(256))
MOST_TESTS = 1_000
"""The most tests that are listed, first the ones with the most proof."""
# All pairs of status bytes, so that a statement can count flips by the columns of `changes`.
FLIPS = [(old, new) for old in range(STATUS_BYTES) for new in range(STATUS_BYTES) if is_flip(old, new)]
CEASED = [
    (old, new) for old in range(STATUS_BYTES) for new in range(STATUS_BYTES) if is_flaky(old) and not is_flaky(new)
]
"""A test ceased to be flaky: the only sign of one that was flaky in the first run of its suite, and never again."""
LEAST_FLIPS = 3
"""A test without proof is listed if it changed this often between good and bad. A failure that was fixed has two."""
MOST_PROOFS = 5


@dataclass(frozen=True, slots=True)
class FlakyCommit:
    """A commit at which a test both passed and failed, in `runs` runs; `run_id` is the last of them."""

    sha: str
    committed_at: float
    run_id: str
    runs: int


@dataclass(frozen=True, slots=True)
class FlakyTest:
    """A flaky test of a target. `proofs` are the newest commits with both outcomes; `proved` counts all of them.

    `flips` counts its changes between good and bad; `failed` of the last `runs` runs failed.
    """

    target: TargetKey
    suite: str
    test: str
    flips: int
    runs: int
    failed: int
    proved: int
    explains: bool
    proofs: tuple[FlakyCommit, ...] = ()


@dataclass(frozen=True, slots=True)
class FlakyList:
    """Some flaky tests, those with the most proof first; `total` counts all, up to `MOST_TESTS`.

    `suites` counts the suites on targets that have a nightly run.
    """

    tests: list[FlakyTest]
    total: int
    suites: int


@dataclass(frozen=True, slots=True)
class _Candidate:
    suite: SuiteOnTarget
    ordinal: int
    proved: int
    flips: int


SEPARATOR = ","


def _joined(ordinals: sa.ColumnElement[int]) -> sa.ColumnElement[str]:
    return sa.func.aggregate_strings(sa.cast(ordinals, sa.Text), SEPARATOR)


# One row per series: to group by tests too, SQLite would sort all flips, which takes twice as long as the rest.
_CHANGES, _POINTS = schema.changes, schema.points
_PAIR = sa.tuple_(_CHANGES.c.before, _CHANGES.c.after)
_FLIPPED = (
    sa.select(_POINTS.c.series_id)
    .add_columns(_joined(_CHANGES.c.ordinal), _joined(sa.case((_CHANGES.c.after >= FLAKY, _CHANGES.c.ordinal))))
    .select_from(_POINTS.join(_CHANGES, _CHANGES.c.point_id == _POINTS.c.id))
    .where(_POINTS.c.series_id.in_(sa.bindparam("numbers", expanding=True)))
    .where(_POINTS.c.committed_at >= sa.bindparam("since"))
    .where(_PAIR.in_(FLIPS))
    .group_by(_POINTS.c.series_id)
)
"""The tests of each series that changed between good and bad, and those that became flaky: once for each change."""
_FIRST = (
    sa.select(sa.func.min(_POINTS.c.committed_at))
    .where(_POINTS.c.series_id == schema.series.c.id, _POINTS.c.linked)
    .correlate(schema.series)
    .scalar_subquery()
)
_BEGUN = sa.select(schema.series.c.id).where(
    schema.series.c.id.in_(sa.bindparam("numbers", expanding=True)), sa.bindparam("since") <= _FIRST
)
"""The series whose first commit was made since a moment: few, most of the time none."""
_CEASED = (
    sa.select(_POINTS.c.series_id, _CHANGES.c.ordinal)
    .select_from(_POINTS.join(_CHANGES, _CHANGES.c.point_id == _POINTS.c.id))
    .where(_POINTS.c.series_id.in_(sa.bindparam("numbers", expanding=True)))
    .where(_POINTS.c.committed_at >= sa.bindparam("since"))
    .where(_PAIR.in_(CEASED))
    .distinct()
)

_FlakyCounts = dict[tuple[int, int], tuple[int, int]]
"""By series and ordinal of a test: how often it became flaky, and how often it changed between good and bad."""


def flaky_tests(connection: sa.Connection, query: ListedTests, since: float) -> FlakyList:
    """Return the tests that were flaky in commits made since a moment, in seconds since 1970."""
    suites = {suite.series: suite for suite in suites_on_targets(connection, query.repository, *(query.target or ()))}
    columns = newest_columns(connection, suites.values())
    counts = _candidates(connection, suites, columns, since)
    candidates = _under_present_names(connection, suites, columns, counts, query.aliases)
    if query.text:
        candidates = [
            candidate
            for candidate in candidates
            if query.text in all_names(connection, candidate.suite.row)[candidate.ordinal].lower()
        ]
    page = candidates[query.start : query.start + query.limit]
    windows = newest_points(connection, {candidate.suite.series for candidate in page}, WINDOW)
    followed = list(_flaky_tests(connection, page, windows, columns, query.aliases))
    targets = {suite.target: suite.target_id for suite in suites.values()}
    return FlakyList(_with_runs(connection, followed, targets), len(candidates), len(columns))


def _candidates(
    connection: sa.Connection, suites: Mapping[int, SuiteOnTarget], columns: Mapping[int, bytes], since: float
) -> _FlakyCounts:
    """Count the flips of all tests that may be flaky; `columns` has the status column of each newest run."""
    ranked: list[tuple[int, int, int, int]] = []
    numbers = sorted(suites)
    for chunk in schema.in_chunks(numbers):
        for series, flipped, to_flaky in connection.execute(_FLIPPED, {"numbers": chunk, "since": since}):
            # NULL if none of these tests became flaky.
            proofs = Counter((to_flaky or "").split(SEPARATOR))
            ranked += [
                (proofs.get(ordinal, 0), flips, series, int(ordinal))
                for ordinal, flips in Counter(flipped.split(SEPARATOR)).items()
                if flips >= LEAST_FLIPS or ordinal in proofs
            ]
    if len(ranked) > MOST_TESTS:
        ranked = nlargest(MOST_TESTS, ranked)
    counts = {(series, ordinal): (proved, flips) for proved, flips, series, ordinal in ranked}
    for series, ordinal in _flaky_from_the_start(connection, numbers, since):
        proved, flips = counts.get((series, ordinal), (0, 0))
        counts[series, ordinal] = (max(1, proved), flips)
    for series, column in columns.items():
        # A test that is flaky in every run never changes, so it has no rows.
        for ordinal in marked_places(column.translate(IS_FLAKY)):
            proved, flips = counts.get((series, ordinal), (0, 0))
            counts[series, ordinal] = (max(1, proved), flips)
    return counts


def _flaky_from_the_start(connection: sa.Connection, numbers: Sequence[int], since: float) -> Iterator[tuple[int, int]]:
    """Yield tests that ceased to be flaky, of series that began since a moment: their first runs have no changes."""
    for chunk in schema.in_chunks(numbers):
        begun = connection.scalars(_BEGUN, {"numbers": chunk, "since": since}).all()
        for row in connection.execute(_CEASED, {"numbers": begun, "since": since}) if begun else ():
            yield row.series_id, row.ordinal


def _under_present_names(
    connection: sa.Connection,
    suites: Mapping[int, SuiteOnTarget],
    columns: Mapping[int, bytes],
    counts: _FlakyCounts,
    aliases: Aliases,
) -> list[_Candidate]:
    """Add up the counts of a test under all its names; leave out tests that the newest run does not have."""
    absent = defaultdict[int, list[int]](list)
    for series, ordinal in counts:
        if at(columns.get(series, b""), ordinal) == ABSENT:
            absent[series].append(ordinal)
    for series, ordinals in absent.items():
        row = suites[series].row
        renames = series_names(connection, series, all_names(connection, row), aliases, ordinals)
        for ordinal in ordinals:
            proofs, flips = counts.pop((series, ordinal))
            present = renames.now(ordinal, (float("-inf"), ""))
            if at(columns.get(series, b""), present) != ABSENT:
                more_proofs, more_flips = counts.get((series, present), (0, 0))
                counts[series, present] = (proofs + more_proofs, flips + more_flips)
    ordered = [
        _Candidate(suites[series], ordinal, *candidate_counts) for (series, ordinal), candidate_counts in counts.items()
    ]
    return sorted(
        ordered,
        key=lambda candidate: (
            -candidate.proved,
            -candidate.flips,
            candidate.suite.target,
            candidate.suite.name,
            candidate.ordinal,
        ),
    )[:MOST_TESTS]


def _flaky_tests(
    connection: sa.Connection,
    page: Sequence[_Candidate],
    windows: Mapping[int, list[LinkedPoint]],
    columns: Mapping[int, bytes],
    aliases: Aliases,
) -> Iterator[FlakyTest]:
    """Yield the flaky tests of a page, which are followed over the newest runs, in the order of the page."""
    by_series = defaultdict[int, list[_Candidate]](list)
    for candidate in page:
        by_series[candidate.suite.series].append(candidate)
    tests_in_windows = [
        TestsInWindow(
            candidates[0].suite,
            windows.get(series, []),
            columns.get(series, b""),
            [candidate.ordinal for candidate in candidates],
        )
        for series, candidates in by_series.items()
    ]
    histories = window_histories(connection, tests_in_windows, aliases)
    test_of: dict[tuple[int, int], FlakyTest] = {}
    for series, candidates in by_series.items():
        suite, window, history_of = candidates[0].suite, windows.get(series, []), histories.get(series, {})
        name_of = all_names(connection, suite.row)
        for candidate in candidates:
            history = history_of.get(candidate.ordinal, [])
            flakiness = flakiness_of(history, len(window))
            proofs = [
                point
                for point, seen in zip(window, outcomes(history, len(window)), strict=False)
                if seen is not None and seen.flaky
            ]
            test_of[series, candidate.ordinal] = FlakyTest(
                suite.target,
                suite.name,
                name_of[candidate.ordinal],
                candidate.flips,
                flakiness.runs + flakiness.row,
                flakiness.failed + flakiness.row,
                len(proofs),
                flakiness.explains,
                tuple(FlakyCommit(point.sha, point.committed_at, "", 0) for point in proofs[: -MOST_PROOFS - 1 : -1]),
            )
    for candidate in page:
        yield test_of[candidate.suite.series, candidate.ordinal]


def _with_runs(
    connection: sa.Connection, tests: Sequence[FlakyTest], targets: Mapping[TargetKey, int]
) -> list[FlakyTest]:
    """Add to each proof the runs that it consists of."""
    places = {(targets[test.target], proof.sha, test.suite) for test in tests for proof in test.proofs}
    stored = stored_runs(connection, places)

    def with_runs(test: FlakyTest, proof: FlakyCommit) -> FlakyCommit:
        runs = stored.get((targets[test.target], proof.sha, test.suite), [])
        return FlakyCommit(proof.sha, proof.committed_at, runs[-1].run_id if runs else "", len(runs))

    return [replace(test, proofs=tuple(with_runs(test, proof) for proof in test.proofs)) for test in tests]
