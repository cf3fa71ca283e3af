"""Count the tests that flip back in the newest runs of a target, from the runs' columns.

Each column is treated as one large number, so a run of 300,000 tests takes a few milliseconds, whatever has changed.
"""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Collection, Iterator, Mapping, Sequence
from threading import Lock

import sqlalchemy as sa
from cachetools import LRUCache, cached
from nightjar_formats.columns import STATUS_BYTES, is_flaky, merged, status_of
from nightjar_formats.model import GOOD, TargetKey

from bot.results.compare.health import LOOKBACK, WINDOW, RunFlips, SuiteHealth, suite_health
from bot.results.store.tables.blobs import raw
from bot.results.store.tables.cells import FAILS
from bot.results.store.tables.points import SuiteOnTarget, newest_points, suites_on_targets
from bot.results.store.tables.runs import Place, stored_columns

MOST_CACHED = 1_000
"""Windows whose flips a process remembers: those of other targets stay the same when a run arrives."""
MOST_BYTES = 16_000_000
"""Bytes of the columns that are in memory at the same time."""


_PASSED, _FAILED = 1, 2


def _outcome(byte: int) -> int:
    """Return whether a status byte says that a test passed or failed; 0 for neither.

    A flaky failure counts as a pass, as in all other modules.
    """
    if byte in FAILS:
        return _FAILED
    return _PASSED if byte < STATUS_BYTES and (status_of(byte) in GOOD or is_flaky(byte)) else 0


_OUTCOMES = bytes(map(_outcome, range(256)))


def flips_of_suites(
    connection: sa.Connection, suites: Collection[SuiteOnTarget], sha: str = ""
) -> dict[int, list[RunFlips]]:
    """Return the flips of the last runs of each suite on its target, oldest first, by series.

    The last runs end with the commit `sha`; by default, with the newest run.
    """
    by_series = {suite.series: suite for suite in suites}
    windows = newest_points(connection, by_series, WINDOW, sha)
    places = {number: [by_series[number].place_at(point.sha) for point in window] for number, window in windows.items()}
    flips_of = {}
    for chunk in _chunks_by_size(by_series, places):
        stored = stored_columns(connection, [place for number in chunk for place in places[number]])
        for number in chunk:
            shas = tuple(point.sha for point in windows[number])
            flips_of[number] = _flips_of_stored(shas, [stored.get(place, ()) for place in places[number]])
    return flips_of


def _key(shas: tuple[str, ...], stored: Sequence[Sequence[bytes]]) -> bytes:
    """Return a digest of all arguments: the same columns of the same commits have the same flips."""
    digest = hashlib.blake2b(repr((shas, [list(map(len, columns)) for columns in stored])).encode(), digest_size=16)
    for columns in stored:
        for column in columns:
            digest.update(column)
    return digest.digest()


@cached(LRUCache(MOST_CACHED), _key, Lock())
def _flips_of_stored(shas: tuple[str, ...], stored: Sequence[Sequence[bytes]]) -> list[RunFlips]:
    """Return what `flips` yields; `stored` has the compressed columns of the runs of each commit."""
    return list(flips(shas, [merged(list(map(raw, columns))) for columns in stored]))


def health_of_suites(connection: sa.Connection, target: TargetKey, sha: str = "") -> dict[str, SuiteHealth]:
    """Return how reliable the results of each suite of a target are at a commit, by default at its newest run."""
    suites = suites_on_targets(connection, target.repository, target.lab, target.target)
    flips_of = flips_of_suites(connection, suites, sha)
    return {suite.name: suite_health(flips_of[suite.series]) for suite in suites if suite.series in flips_of}


def unreliable_suites(connection: sa.Connection, target: TargetKey, sha: str = "") -> dict[str, SuiteHealth]:
    """Return the suites whose results are unreliable at a commit on a target, by default at the newest run."""
    health_by_suite = health_of_suites(connection, target, sha)
    return {suite: health for suite, health in health_by_suite.items() if health.unreliable}


def _chunks_by_size(
    by_series: Mapping[int, SuiteOnTarget], places: Mapping[int, Sequence[Place]]
) -> Iterator[Sequence[int]]:
    """Yield series in chunks whose columns together take at most `MOST_BYTES`."""
    chunk, size = list[int](), 0
    for number, suite_places in places.items():
        # A column has at most one byte for each name of its suite.
        size += by_series[number].row.names * len(suite_places)
        if chunk and size > MOST_BYTES:
            yield chunk
            chunk, size = [], by_series[number].row.names * len(suite_places)
        chunk.append(number)
    if chunk:
        yield chunk


def flips(shas: Sequence[str], columns: Sequence[bytes]) -> Iterator[RunFlips]:
    """Yield how many tests flipped back in each run; runs in which a test was skipped or absent are ignored for it."""
    passed = failed = 0
    ones = int.from_bytes(b"\x01" * max(map(len, columns), default=0), "little")
    recent = deque[int](maxlen=LOOKBACK)
    for sha, column in zip(shas, columns, strict=True):
        outcomes = column.translate(_OUTCOMES)
        both = int.from_bytes(outcomes, "little")
        passes, fails = both & ones, both >> 1 & ones
        flipped = (passed & fails) | (failed & passes)
        recently_flipped = 0
        for earlier_flips in recent:
            recently_flipped |= earlier_flips
        yield RunFlips(sha, (flipped & recently_flipped).bit_count(), len(outcomes) - outcomes.count(0))
        recent.append(flipped)
        # The last outcome of each test: runs in which it was skipped or absent change nothing.
        passed, failed = (passed & ~fails) | passes, (failed & ~passes) | fails
