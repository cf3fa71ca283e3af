"""Read tests over the newest runs of a series, under all names that they had."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from nightjar_formats.columns import ABSENT, SEEN, at
from nightjar_formats.model import SeenTest

from bot.core.aliases import Aliases
from bot.results.compare.lasting import Segment
from bot.results.store.history.series_names import ChangesOf, SeriesNames, changes_of, changes_since, series_names
from bot.results.store.tables.names import SuiteRow, all_names, ordinals_by_name
from bot.results.store.tables.points import LinkedPoint, Position, SuiteOnTarget
from bot.results.store.tables.rename_pairs import PointRenames, renames_of

NameSpan = tuple[int, Position, Position]
"""The ordinal of a name of a test, and from and until which commit the test had it."""


@dataclass(frozen=True, slots=True)
class TestsInWindow:
    """Some tests of a suite on a target, and its newest points; `column` is the status column of the last one."""

    suite: SuiteOnTarget
    window: Sequence[LinkedPoint]
    column: bytes
    ordinals: Sequence[int]


def window_histories(
    connection: sa.Connection, queries: Iterable[TestsInWindow], aliases: Aliases
) -> dict[int, dict[int, list[Segment]]]:
    """Return the segments of some tests over the newest points of each series, by series and ordinal."""
    tests_in_windows = [tests for tests in queries if tests.window and tests.ordinals]
    if not tests_in_windows:
        return {}
    renames: dict[int, list[PointRenames]] = {tests.suite.series: [] for tests in tests_in_windows}
    for point in renames_of(connection, list(renames)):
        renames[point.series_id].append(point)
    spans = {}
    for tests in tests_in_windows:
        series, name_of = tests.suite.series, all_names(connection, tests.suite.row)
        names_then = series_names(connection, series, name_of, aliases, tests.ordinals, renames[series])
        spans[series] = {ordinal: list(names_then.spans(ordinal)) for ordinal in tests.ordinals}
    names = {
        series: {name for spans_of_test in by_test.values() for name, _, _ in spans_of_test}
        for series, by_test in spans.items()
    }
    changes = changes_since(connection, names, min(tests.window[0].committed_at for tests in tests_in_windows))
    histories: dict[int, dict[int, list[Segment]]] = {}
    for tests in tests_in_windows:
        series, chain = tests.suite.series, [(point.committed_at, point.sha) for point in tests.window]
        histories[series] = {
            ordinal: segments_over(
                spans_of_test, changes[series], chain, at(tests.column, last_name(spans_of_test, chain))
            )
            for ordinal, spans_of_test in spans[series].items()
        }
    return histories


def outcomes(history: Sequence[Segment], runs: int) -> list[SeenTest | None]:
    """Return how a test ended in each of `runs` runs, by its segments."""
    results: list[SeenTest | None] = []
    for index, (begin, seen) in enumerate(history):
        end = history[index + 1][0] if index + 1 < len(history) else runs
        results += [seen] * (end - max(begin, len(results)))
    return results


def histories(
    connection: sa.Connection,
    series: int,
    names_then: SeriesNames,
    chain: Sequence[Position],
    column: bytes,
    ordinals: Sequence[int],
    points: Collection[int] | None = None,
) -> Iterator[tuple[int, list[Segment]]]:
    """Yield tests with their segments over the commits of a chain, under all names that they had.

    `column` has the results at the last commit; `points` restricts the query to the points of the chain.
    """
    spans = {ordinal: list(names_then.spans(ordinal)) for ordinal in ordinals}
    changes = changes_of(
        connection, series, {name for spans_of_test in spans.values() for name, _, _ in spans_of_test}, points
    )
    for ordinal, spans_of_test in spans.items():
        yield ordinal, segments_over(spans_of_test, changes, chain, at(column, last_name(spans_of_test, chain)))


def last_name(spans: Sequence[NameSpan], chain: Sequence[Position]) -> int:
    """Return the ordinal of the name that a test had at the last commit of a chain."""
    names = (name for name, since, _ in spans if not chain or since <= chain[-1])
    return next(names, spans[-1][0])


def names_in(
    connection: sa.Connection, suite: SuiteRow, aliases: Aliases, column: bytes, ordinals: Collection[int], now: bytes
) -> dict[int, int]:
    """Return the name that each test of the column `now` had in an earlier column.

    It is another one, which `now` lacks, if only aliases say that the test was renamed since.
    """
    if all(at(column, ordinal) != ABSENT for ordinal in ordinals):
        return {ordinal: ordinal for ordinal in ordinals}
    name_of, ordinal_of = all_names(connection, suite), ordinals_by_name(connection, suite)

    def name_in_column(ordinal: int) -> int:
        others = (ordinal_of.get(name) for name in aliases.others(name_of[ordinal]))
        removed = (other for other in others if other is not None and at(column, other) != ABSENT == at(now, other))
        return next(removed, ordinal)

    return {ordinal: ordinal if at(column, ordinal) != ABSENT else name_in_column(ordinal) for ordinal in ordinals}


def segments_over(spans: Sequence[NameSpan], changes: ChangesOf, chain: Sequence[Position], last: int) -> list[Segment]:
    """Return the segments of a test over the commits of a chain, by the changes of all names that it had.

    `last` is its status byte at the last of them. `changes` may have changes before and after them too.
    """
    rows = sorted(row for name, since, until in spans for row in changes.get(name, ()) if since <= row[0] < until)
    first = rows[0][1] if rows else last
    if rows and first == ABSENT:
        # With an alias, the test appeared when its other name was removed: that change has the status before.
        removals = [
            change for name, _, until in spans for change in changes.get(name, ()) if change[0] == until == rows[0][0]
        ]
        first = removals[0][1] if removals else ABSENT
    segments = [(0, first)]
    # A change between two commits of the chain takes effect at the later one; of several, the last one counts.
    for position, _, new_status in rows:
        begin = bisect_left(chain, position)
        if begin < len(chain):
            if segments[-1][0] == begin:
                segments.pop()
            segments.append((begin, new_status))
    return [(begin, SEEN[byte] if byte else None) for begin, byte in segments]
