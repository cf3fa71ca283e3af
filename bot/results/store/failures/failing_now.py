"""Find what fails now on each target of a repository, and since when, with a few statements for all targets.

`contexts.failing_now` returns more about one target; both agree in what they have in common.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from nightjar_formats.columns import CODES
from nightjar_formats.model import Status, TargetKey

from bot.core.aliases import Aliases
from bot.results.compare.context import failure_context
from bot.results.store.failures.contexts import MOST_RUNS
from bot.results.store.history.series_names import END, changes_since, series_names
from bot.results.store.history.windows import past_of
from bot.results.store.tables import schema
from bot.results.store.tables.cells import IS_FAILURE, marked_places
from bot.results.store.tables.names import SuiteNames
from bot.results.store.tables.points import (
    LinkedPoint,
    Position,
    SuiteOnTarget,
    newest_points,
    numbers_of,
    status_columns,
    stored_runs,
    suites_on_targets,
)
from bot.results.store.tables.rename_pairs import PointRenames, renames_of

START: Position = (float("-inf"), "")
"""Before every commit."""
FAILED = CODES[Status.FAILED]
NameSpan = tuple[int, Position, Position]
"""A name of a test, by its place, and the moments from and until which it had it."""


@dataclass(frozen=True, slots=True)
class FailingSince:
    """A test that fails in the newest nightly run of its suite, and the commit at which that began."""

    suite: str
    test: str
    since: str


@dataclass(frozen=True, slots=True)
class TargetNow:
    """The newest complete commit of a target, the number of its suites, and how many tests fail in their newest runs.

    `failures` are some of these tests, by suite and name.
    """

    sha: str
    suites: int
    failing: int
    failures: Sequence[FailingSince]


def targets_now(
    connection: sa.Connection, known: SuiteNames, repository: str, limit: int, aliases: Aliases
) -> dict[TargetKey, TargetNow]:
    """Return what fails on each target of a repository with complete results, with at most `limit` tests of each."""
    every = {one.series: one for one in suites_on_targets(connection, repository)}
    newest = {series: found[-1] for series, found in newest_points(connection, every, 1).items()}
    places = {series: (every[series].target_id, point.sha, every[series].suite) for series, point in newest.items()}
    columns = status_columns(connection, numbers_of(stored_runs(connection, places.values())))
    failing = {
        series: marked_places(columns[place].translate(IS_FAILURE)) if place in columns else []
        for series, place in places.items()
    }
    by_target = dict[TargetKey, list[SuiteOnTarget]]()
    for series, one in every.items():
        if series in newest:
            by_target.setdefault(one.about, []).append(one)
    listed = dict[int, list[tuple[str, int]]]()
    for suites in by_target.values():
        room = limit
        for one in sorted(suites, key=lambda one: one.suite):
            name_of = known.all(connection, one.row) if room and failing[one.series] else []
            some = sorted((name_of[place], place) for place in failing[one.series])[:room] if name_of else []
            listed[one.series] = some
            room -= len(some)
    since = _since(connection, known, every, newest, listed, aliases)
    found = {}
    for about, suites in by_target.items():
        latest = max((newest[one.series].committed_at, newest[one.series].sha, one.suite) for one in suites)
        failures = [
            FailingSince(one.suite, name, since[one.series, place])
            for one in sorted(suites, key=lambda one: one.suite)
            for name, place in listed[one.series]
        ]
        found[about] = TargetNow(latest[1], len(suites), sum(len(failing[one.series]) for one in suites), failures)
    return found


def _since(
    connection: sa.Connection,
    known: SuiteNames,
    every: Mapping[int, SuiteOnTarget],
    newest: Mapping[int, LinkedPoint],
    listed: Mapping[int, Sequence[tuple[str, int]]],
    aliases: Aliases,
) -> dict[tuple[int, int], str]:
    """Return the commit at which the failure of each test began, by its series and place."""
    wanted = {series: [place for _, place in tests] for series, tests in listed.items() if tests}
    if not wanted:
        return {}
    oldest = _oldest(connection, wanted)
    spans = _spans(connection, known, every, wanted, aliases)
    names = {series: {name for those in of.values() for name, _, _ in those} for series, of in spans.items()}
    changes = changes_since(connection, names, min(at for at, _ in oldest.values()))
    found = {}
    for series, of_series in spans.items():
        here = (newest[series].committed_at, newest[series].sha)
        for place, those in of_series.items():
            # Between two of its changes a test always ended in the same way, so other commits are not needed.
            moments = {row[0] for name, _, _ in those for row in changes[series].get(name, ())}
            chain = sorted({one for one in {*moments, oldest[series]} if oldest[series] <= one < here})
            # If nothing has changed, it ended at all commits as it does now.
            past = past_of(those, changes[series], chain, FAILED) if chain else []
            found[series, place] = failure_context(past, [sha for _, sha in chain]).since or here[1]
    return found


def _spans(
    connection: sa.Connection,
    known: SuiteNames,
    every: Mapping[int, SuiteOnTarget],
    wanted: Mapping[int, Sequence[int]],
    aliases: Aliases,
) -> dict[int, dict[int, list[NameSpan]]]:
    """Return the names of each test, and when it had them, by its series and place."""
    renames = defaultdict[int, list[PointRenames]](list)
    for point in renames_of(connection, sorted(wanted)):
        renames[point.series_id].append(point)
    found: dict[int, dict[int, list[NameSpan]]] = {}
    for series, places in wanted.items():
        found[series] = {place: [(place, START, END)] for place in places}
        if aliases or renames[series]:
            name_of = known.all(connection, every[series].row)
            then = series_names(connection, series, name_of, aliases, places, renames[series])
            found[series] = {place: list(then.spans(place)) for place in places}
    return found


def _oldest(connection: sa.Connection, series: Collection[int]) -> dict[int, Position]:
    """Return the oldest commit of each series within the last `MOST_RUNS` runs."""
    table, points = schema.series, schema.points
    other = points.alias()
    linked = sa.select(other.c.id).where(other.c.series_id == table.c.id, other.c.linked).limit(1).correlate(table)
    last = linked.order_by(other.c.committed_at.desc(), other.c.sha.desc()).offset(MOST_RUNS)
    # For a series with fewer runs.
    first = linked.order_by(other.c.committed_at, other.c.sha)
    statement = (
        sa.select(table.c.id, points.c.committed_at, points.c.sha)
        .select_from(
            table.join(points, points.c.id == sa.func.coalesce(last.scalar_subquery(), first.scalar_subquery()))
        )
        .where(table.c.id.in_(sorted(series)))
    )
    return {row.id: (row.committed_at, row.sha) for row in connection.execute(statement)}
