"""Which new failures of a grid's points the known flakiness of their tests explains, for all series at once.

Only a test of which one run in its window had both outcomes is known to be flaky. An index has the changes at such
runs, so that no other test need be followed from run to run. `flakiness.py` does the same for one run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from nightjar_formats.columns import SEEN, at, is_flaky

from bot.core.aliases import Aliases
from bot.results.compare.flaky import WINDOW, flakiness_of
from bot.results.store import schema
from bot.results.store.failures import past_of
from bot.results.store.names import SuiteNames, SuiteRow
from bot.results.store.newest_points import LinkedPoint
from bot.results.store.rename_pairs import renames_of
from bot.results.store.renamed import changes_of, series_names
from bot.results.store.trace import Position

Place = tuple[int, str]
"""A series, and a commit."""


@dataclass(frozen=True, slots=True)
class FreshFailures:
    """The new failures of a suite at a commit, by their places.

    `now` is how its tests ended there, and `linked` likewise at the newest linked point up to there, mostly itself.
    """

    position: Position
    places: Sequence[int]
    now: bytes
    linked: bytes


def explained_places(
    connection: sa.Connection,
    known: SuiteNames,
    suites: Mapping[int, SuiteRow],
    asked: Mapping[int, Sequence[FreshFailures]],
    aliases: Aliases,
) -> dict[Place, list[int]]:
    """Return which of some new failures, by their series, are explained; `suites` has the suite of each series."""
    if not asked:
        return {}
    windows = _windows(connection, asked)
    flaky = _flaky_places(connection, windows)
    renamed = {one.series_id for one in renames_of(connection, sorted(asked))}
    found: dict[Place, list[int]] = {}
    for series, points in asked.items():
        all_of_them = bool(aliases) or series in renamed
        candidates = {
            place
            for one in points
            for place in one.places
            if all_of_them or place in flaky[series] or is_flaky(at(one.now, place)) or is_flaky(at(one.linked, place))
        }
        if not candidates:
            continue
        window = windows.get(series, [])
        chain = [(point.committed_at, point.sha) for point in window]
        ordered = sorted(candidates)
        name_of = known.every(connection, suites[series]) if aliases else ()
        then = series_names(connection, series, name_of, aliases, ordered)
        spans = {place: list(then.spans(place)) for place in ordered}
        names = {name for those in spans.values() for name, _, _ in those}
        changes = changes_of(connection, series, names, [point.id for point in window])
        for one in points:
            end = bisect_right(chain, one.position)
            part = chain[max(0, end - WINDOW) : end]
            explained = []
            for place in candidates.intersection(one.places):
                history, runs = past_of(spans[place], changes, part, at(one.linked, place)), len(part)
                if not part or part[-1] != one.position:
                    history, runs = [*history, (runs, SEEN[at(one.now, place)])], runs + 1
                if flakiness_of(history, runs).explains:
                    explained.append(place)
            found[series, one.position[1]] = sorted(explained)
    return found


def _windows(connection: sa.Connection, asked: Mapping[int, Sequence[FreshFailures]]) -> dict[int, list[LinkedPoint]]:
    """Return the linked points of each series from the window of its oldest commit on, the oldest first."""
    table, points = schema.series, schema.points
    moments = [one.position[0] for of_series in asked.values() for one in of_series]
    other = points.alias()
    oldest = (
        sa.select(other.c.committed_at)
        .where(other.c.series_id == table.c.id, other.c.linked, other.c.committed_at <= min(moments))
        .order_by(other.c.committed_at.desc(), other.c.sha.desc())
        .limit(1)
        .offset(WINDOW - 1)
        .correlate(table)
        .scalar_subquery()
    )
    found: dict[int, list[LinkedPoint]] = {}
    numbers = sorted(asked)
    for some in schema.in_parts(numbers):
        statement = (
            sa.select(points.c.series_id, points.c.id, points.c.sha, points.c.committed_at)
            .select_from(table.join(points, points.c.series_id == table.c.id))
            .where(table.c.id.in_(some), points.c.linked)
            .where(points.c.committed_at >= sa.func.coalesce(oldest, 0.0), points.c.committed_at <= max(moments))
            .order_by(points.c.series_id, points.c.committed_at, points.c.sha)
        )
        for row in connection.execute(statement):
            found.setdefault(row.series_id, []).append(LinkedPoint(row.id, row.sha, row.committed_at))
    return found


def _flaky_places(
    connection: sa.Connection, windows: Mapping[int, Collection[LinkedPoint]]
) -> defaultdict[int, set[int]]:
    """Return the tests of each series that became flaky, or ceased to be, at one of its points."""
    table = schema.changes
    points = sorted(point.id for window in windows.values() for point in window)
    found = defaultdict[int, set[int]](set)
    for some in schema.in_parts(points):
        statement = (
            sa.select(table.c.series_id, table.c.ordinal).where(table.c.point_id.in_(some), schema.OF_FLAKY).distinct()
        )
        for row in connection.execute(statement):
            found[row.series_id].add(row.ordinal)
    return found
