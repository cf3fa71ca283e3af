"""Count the tests that flip back in the newest runs of a target, from the runs' columns.

Each column is treated as one large number, so a run of 300,000 tests takes a few milliseconds, whatever has changed.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence

import sqlalchemy as sa
from nightjar_formats.columns import STATUS_BYTES, is_flaky, status_of
from nightjar_formats.model import GOOD, TargetKey

from bot.results.compare.health import LOOKBACK, WINDOW, RunFlips, SuiteHealth, suite_health
from bot.results.store.tables.cells import FAILS
from bot.results.store.tables.points import (
    Place,
    SuiteOnTarget,
    newest_points,
    numbers_of,
    status_columns,
    stored_runs,
    suites_on_targets,
)

MOST_BYTES = 16_000_000
"""Bytes of the columns that are in memory at the same time."""


def _bits(of: set[int]) -> bytes:
    return bytes(byte in of for byte in range(256))


_FAILED = _bits(set(FAILS))
_PASSED = _bits({byte for byte in range(STATUS_BYTES) if status_of(byte) in GOOD or is_flaky(byte)})
"""A flaky failure counts as a pass, as in all other modules."""


def of_target(connection: sa.Connection, about: TargetKey, sha: str = "") -> dict[str, SuiteHealth]:
    """Return the health of each suite of a target at a commit, by default at its newest run."""
    every = suites_on_targets(connection, about.repository, about.lab, about.target)
    found = flips_of_suites(connection, every, sha)
    return {one.suite: suite_health(found[one.series]) for one in every if one.series in found}


def flips_of_suites(
    connection: sa.Connection, every: Collection[SuiteOnTarget], sha: str = ""
) -> dict[int, list[RunFlips]]:
    """Return the flips of the last runs of each suite on its target, oldest first, by series.

    The last runs are those up to a commit; by default, the newest ones.
    """
    by_series = {one.series: one for one in every}
    windows = newest_points(connection, by_series, WINDOW, sha)
    place_of = {number: (one.target_id, one.suite) for number, one in by_series.items()}
    places = {
        number: [(place_of[number][0], point.sha, place_of[number][1]) for point in window]
        for number, window in windows.items()
    }
    stored = numbers_of(stored_runs(connection, (place for those in places.values() for place in those)))
    found = {}
    for some in _few_bytes(by_series, places):
        columns = status_columns(
            connection, {place: stored.get(place, []) for number in some for place in places[number]}
        )
        for number in some:
            shas = [point.sha for point in windows[number]]
            found[number] = list(flips(shas, [columns[place] for place in places[number]]))
    return found


def _few_bytes(
    by_series: Mapping[int, SuiteOnTarget], places: Mapping[int, Sequence[Place]]
) -> Iterator[Sequence[int]]:
    """Yield series in parts whose columns together take at most `MOST_BYTES`."""
    some, size = list[int](), 0
    for number, those in places.items():
        # A column has at most one byte for each name of its suite.
        size += by_series[number].row.names * len(those)
        if some and size > MOST_BYTES:
            yield some
            some, size = [], by_series[number].row.names * len(those)
        some.append(number)
    if some:
        yield some


def flips(shas: Sequence[str], columns: Sequence[bytes]) -> Iterator[RunFlips]:
    """Yield how many tests flipped back in each run; runs in which a test was skipped or absent are ignored for it."""
    passed = failed = 0
    recent = deque[int](maxlen=LOOKBACK)
    for sha, column in zip(shas, columns, strict=True):
        passes, fails = (int.from_bytes(column.translate(table), "little") for table in (_PASSED, _FAILED))
        flipped = (passed & fails) | (failed & passes)
        before = 0
        for one in recent:
            before |= one
        yield RunFlips(sha, (flipped & before).bit_count(), (passes | fails).bit_count())
        recent.append(flipped)
        # The last outcome of each test: runs in which it was skipped or absent change nothing.
        passed, failed = (passed & ~fails) | passes, (failed & ~passes) | fails
