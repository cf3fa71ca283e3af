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
from nightjar_formats.columns import ABSENT, FLAKY, at, is_flaky
from nightjar_formats.model import TargetKey

from bot.core.aliases import Aliases
from bot.results.compare.flaky import WINDOW, flakiness_of
from bot.results.store.history.baselines import FLIPS
from bot.results.store.history.series_names import series_names
from bot.results.store.history.windows import TestsInWindow, outcomes, window_histories
from bot.results.store.lists.listed_tests import ListedTests
from bot.results.store.tables import schema
from bot.results.store.tables.cells import marked_places
from bot.results.store.tables.names import SuiteNames
from bot.results.store.tables.points import (
    LinkedPoint,
    SuiteOnTarget,
    newest_columns,
    newest_points,
    stored_runs,
    suites_on_targets,
)

IS_FLAKY = bytes(byte > FLAKY and is_flaky(byte) for byte in range(256))
MOST_TESTS = 1_000
"""The most tests that are considered; those with the most proof come first."""
LEAST_FLIPS = 3
"""A test without proof is listed if it changed this often between good and bad. A failure that was fixed has two."""
MOST_PROOFS = 5


@dataclass(frozen=True, slots=True)
class FlakyCommit:
    """A commit of which a test had both outcomes: in `runs` runs, the last of which is `run_id`."""

    sha: str
    committed_at: float
    run_id: str
    runs: int


@dataclass(frozen=True, slots=True)
class FlakyTest:
    """A flaky test of a target. `proofs` are the newest commits with both outcomes; `proved` counts all of them.

    `flips` counts its changes between good and bad; `failed` of the last `runs` runs failed.
    """

    about: TargetKey
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
    one: SuiteOnTarget
    ordinal: int
    proved: int
    flips: int


SEPARATOR = ","


def _places(of: sa.ColumnElement[int]) -> sa.ColumnElement[str]:
    return sa.func.aggregate_strings(sa.cast(of, sa.Text), SEPARATOR)


# One row per series: to group by tests too, SQLite would sort all flips, which takes twice as long as the rest.
_CHANGES, _POINTS = schema.changes, schema.points
_FLIPPED = (
    sa.select(_POINTS.c.series_id)
    .add_columns(_places(_CHANGES.c.ordinal), _places(sa.case((_CHANGES.c.after >= FLAKY, _CHANGES.c.ordinal))))
    .select_from(_POINTS.join(_CHANGES, _CHANGES.c.point_id == _POINTS.c.id))
    .where(_POINTS.c.series_id.in_(sa.bindparam("numbers", expanding=True)))
    .where(_POINTS.c.committed_at >= sa.bindparam("since"))
    .where(sa.tuple_(_CHANGES.c.before, _CHANGES.c.after).in_(FLIPS))
    .group_by(_POINTS.c.series_id)
)
"""The tests of each series that changed between good and bad, and those that became flaky: once for each change."""

_Found = dict[tuple[int, int], tuple[int, int]]
"""How often a test, by its series and place, became flaky, and how often it changed between good and bad."""


def flaky_tests(
    connection: sa.Connection,
    known: SuiteNames,
    asked: ListedTests,
    since: float,
) -> FlakyList:
    """Return tests that were flaky in commits made since a moment."""
    every = {one.series: one for one in suites_on_targets(connection, asked.repository, *(asked.target or ()))}
    columns = newest_columns(connection, every.values())
    found = _candidates(connection, every, columns, since)
    candidates = _under_present_names(connection, known, every, columns, found, asked.aliases)
    if asked.text:
        candidates = [
            one for one in candidates if asked.text in known.all(connection, one.one.row)[one.ordinal].lower()
        ]
    shown = candidates[asked.start : asked.start + asked.limit]
    windows = newest_points(connection, {one.one.series for one in shown}, WINDOW)
    followed = list(_followed(connection, known, shown, windows, columns, asked.aliases))
    targets = {one.about: one.target_id for one in every.values()}
    return FlakyList(_with_runs(connection, followed, targets), len(candidates), len(columns))


def _candidates(
    connection: sa.Connection, every: Mapping[int, SuiteOnTarget], columns: Mapping[int, bytes], since: float
) -> _Found:
    ranked: list[tuple[int, int, int, int]] = []
    numbers = sorted(every)
    for some in schema.in_chunks(numbers):
        for series, flipped, to_flaky in connection.execute(_FLIPPED, {"numbers": some, "since": since}):
            # NULL if none of these tests became flaky.
            proofs = Counter((to_flaky or "").split(SEPARATOR))
            for place, flips in Counter(flipped.split(SEPARATOR)).items():
                if flips >= LEAST_FLIPS or place in proofs:
                    ranked.append((proofs[place], flips, series, int(place)))
    if len(ranked) > MOST_TESTS:
        ranked = nlargest(MOST_TESTS, ranked)
    found = {(series, ordinal): (proved, flips) for proved, flips, series, ordinal in ranked}
    for series, column in columns.items():
        # A test that is flaky in every run never changes, so it has no rows.
        for ordinal in marked_places(column.translate(IS_FLAKY)):
            proved, flips = found.get((series, ordinal), (0, 0))
            found[series, ordinal] = (max(1, proved), flips)
    return found


def _under_present_names(
    connection: sa.Connection,
    known: SuiteNames,
    every: Mapping[int, SuiteOnTarget],
    columns: Mapping[int, bytes],
    found: _Found,
    aliases: Aliases,
) -> list[_Candidate]:
    """Add up what is known about a test under all its names; leave out those that the newest run does not have."""
    absent = defaultdict[int, list[int]](list)
    for series, ordinal in found:
        if at(columns.get(series, b""), ordinal) == ABSENT:
            absent[series].append(ordinal)
    for series, ordinals in absent.items():
        row = every[series].row
        renames = series_names(connection, series, known.all(connection, row), aliases, ordinals)
        for ordinal in ordinals:
            proofs, flips = found.pop((series, ordinal))
            now = renames.now(ordinal, (float("-inf"), ""))
            if at(columns.get(series, b""), now) != ABSENT:
                more_proofs, more_flips = found.get((series, now), (0, 0))
                found[series, now] = (proofs + more_proofs, flips + more_flips)
    ordered = [_Candidate(every[series], ordinal, *of) for (series, ordinal), of in found.items()]
    return sorted(ordered, key=lambda one: (-one.proved, -one.flips, one.one.about, one.one.suite, one.ordinal))[
        :MOST_TESTS
    ]


def _followed(
    connection: sa.Connection,
    known: SuiteNames,
    shown: Sequence[_Candidate],
    windows: Mapping[int, list[LinkedPoint]],
    columns: Mapping[int, bytes],
    aliases: Aliases,
) -> Iterator[FlakyTest]:
    of_series = defaultdict[int, list[_Candidate]](list)
    for one in shown:
        of_series[one.one.series].append(one)
    asked = [
        TestsInWindow(those[0].one, windows.get(series, []), columns.get(series, b""), [one.ordinal for one in those])
        for series, those in of_series.items()
    ]
    histories = window_histories(connection, known, asked, aliases)
    followed: dict[tuple[int, int], FlakyTest] = {}
    for series, candidates in of_series.items():
        suite, window, pasts = candidates[0].one, windows.get(series, []), histories.get(series, {})
        name_of = known.all(connection, suite.row)
        for one in candidates:
            past = pasts.get(one.ordinal, [])
            flakiness = flakiness_of(past, len(window))
            proofs = [
                FlakyCommit(point.sha, point.committed_at, "", 0)
                for point, seen in zip(window, outcomes(past, len(window)), strict=False)
                if seen is not None and seen.flaky
            ]
            followed[series, one.ordinal] = FlakyTest(
                suite.about,
                suite.suite,
                name_of[one.ordinal],
                one.flips,
                flakiness.runs + flakiness.row,
                flakiness.failed + flakiness.row,
                len(proofs),
                flakiness.explains,
                tuple(proofs[: -MOST_PROOFS - 1 : -1]),
            )
    for one in shown:
        yield followed[one.one.series, one.ordinal]


def _with_runs(
    connection: sa.Connection, found: Sequence[FlakyTest], targets: Mapping[TargetKey, int]
) -> list[FlakyTest]:
    """Add to each proof the runs that it consists of."""
    places = {(targets[one.about], proof.sha, one.suite) for one in found for proof in one.proofs}
    stored = stored_runs(connection, places)

    def of_runs(one: FlakyTest, proof: FlakyCommit) -> FlakyCommit:
        runs = stored.get((targets[one.about], proof.sha, one.suite), [])
        return replace(proof, run_id=runs[-1].run_id if runs else "", runs=len(runs))

    return [replace(one, proofs=tuple(of_runs(one, proof) for proof in one.proofs)) for one in found]
