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
from bot.results.store.tables.names import SuiteNames
from bot.results.store.tables.points import LinkedPoint, Position, SuiteOnTarget
from bot.results.store.tables.rename_pairs import PointRenames, renames_of


@dataclass(frozen=True, slots=True)
class TestsInWindow:
    """Some tests of a suite on a target, by their places, over its newest points; `column` is that of the last one."""

    one: SuiteOnTarget
    window: Sequence[LinkedPoint]
    column: bytes
    ordinals: Sequence[int]


def window_histories(
    connection: sa.Connection, known: SuiteNames, asked: Iterable[TestsInWindow], aliases: Aliases
) -> dict[int, dict[int, list[Segment]]]:
    """Return the segments of some tests over the newest points of each series, by series and place."""
    wanted = [tests for tests in asked if tests.window and tests.ordinals]
    if not wanted:
        return {}
    renames: dict[int, list[PointRenames]] = {tests.one.series: [] for tests in wanted}
    for point in renames_of(connection, list(renames)):
        renames[point.series_id].append(point)
    spans = {}
    for tests in wanted:
        series, name_of = tests.one.series, known.all(connection, tests.one.row)
        then = series_names(connection, series, name_of, aliases, tests.ordinals, renames[series])
        spans[series] = {ordinal: list(then.spans(ordinal)) for ordinal in tests.ordinals}
    names = {series: {name for those in of.values() for name, _, _ in those} for series, of in spans.items()}
    changes = changes_since(connection, names, min(tests.window[0].committed_at for tests in wanted))
    found: dict[int, dict[int, list[Segment]]] = {}
    for tests in wanted:
        series, chain = tests.one.series, [(point.committed_at, point.sha) for point in tests.window]
        found[series] = {
            ordinal: past_of(those, changes[series], chain, at(tests.column, ordinal))
            for ordinal, those in spans[series].items()
        }
    return found


def outcomes(history: Sequence[Segment], runs: int) -> list[SeenTest | None]:
    """Return how a test ended in each of so many runs, by its segments."""
    found: list[SeenTest | None] = []
    for place, (begin, seen) in enumerate(history):
        end = history[place + 1][0] if place + 1 < len(history) else runs
        found += [seen] * (end - max(begin, len(found)))
    return found


def histories(
    connection: sa.Connection,
    series: int,
    names_then: SeriesNames,
    chain: Sequence[Position],
    now: bytes,
    ordinals: Sequence[int],
    points: Collection[int] | None = None,
) -> Iterator[tuple[int, list[Segment]]]:
    """Yield tests with their segments over the commits of a chain, under all names that they had.

    `now` has the results at the last commit; `points` restricts the query to the points of the chain.
    """
    spans = {ordinal: list(names_then.spans(ordinal)) for ordinal in ordinals}
    changes = changes_of(connection, series, {name for those in spans.values() for name, _, _ in those}, points)
    for ordinal, those in spans.items():
        yield ordinal, past_of(those, changes, chain, at(now, ordinal))


def past_of(
    names_then: Sequence[tuple[int, Position, Position]], changes: ChangesOf, chain: Sequence[Position], now: int
) -> list[Segment]:
    """Return the segments of a test over the commits of a chain, by the changes of all names that it had.

    `now` is its status byte at the last of them; changes before and after them may be there too.
    """
    rows = sorted(row for name, since, until in names_then for row in changes.get(name, ()) if since <= row[0] < until)
    first = rows[0][1] if rows else now
    if rows and first == ABSENT:
        # Under an alias, it appeared when its other name was removed, which tells how it ended before.
        ended = [one for name, _, until in names_then for one in changes.get(name, ()) if one[0] == until == rows[0][0]]
        first = ended[0][1] if ended else ABSENT
    segments = [(0, first)]
    # A change between two commits of the chain takes effect at the later one; of several, the last one counts.
    for position, _, after in rows:
        begin = bisect_left(chain, position)
        if begin < len(chain):
            if segments[-1][0] == begin:
                segments.pop()
            segments.append((begin, after))
    return [(begin, SEEN[byte] if byte else None) for begin, byte in segments]
