"""Find the failures of a grid's points that a quarantine or the known flakiness of their tests explains.

A test is known to be flaky only if one run in its window had both outcomes. An index has the changes at such runs, so
no other test has to be followed from run to run, for all series at once. `flakiness.py` does the same for one run.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from nightjar_formats.columns import SEEN, at

from bot.core.aliases import Aliases
from bot.results.compare.flaky import WINDOW, flakiness_of
from bot.results.compare.quarantine import Quarantine
from bot.results.store.history.series_names import ChangesOf, all_names_of, changes_since, series_names
from bot.results.store.history.windows import NameSpan, last_name, names_in, segments_over
from bot.results.store.tables import schema
from bot.results.store.tables.cells import FAILS, IS_FAILURE, IS_FLAKY, both_marked, marked_places
from bot.results.store.tables.names import SuiteRow, all_names, find_ordinal, ordinals_by_name
from bot.results.store.tables.points import LinkedPoint, Position
from bot.results.store.tables.rename_pairs import PointRenames, renames_of

SeriesCommit = tuple[int, str]
"""A series, and a commit."""


@dataclass(frozen=True, slots=True)
class PointColumn:
    """The status column of a suite at a commit; `linked` is that of the newest linked point up to there, mostly itself.

    Only the failures of `ordinals` are of interest; None stands for all tests.
    """

    position: Position
    column: bytes
    linked: bytes
    ordinals: Collection[int] | None = None


# Made once, because each run needs them, and making them takes longer than answering them.
_CHANGES, _SERIES, _POINTS, _OTHERS = schema.changes, schema.series, schema.points, schema.points.alias()
_OLDEST = (
    sa.select(_OTHERS.c.committed_at)
    .where(_OTHERS.c.series_id == _SERIES.c.id, _OTHERS.c.linked, _OTHERS.c.committed_at <= sa.bindparam("first"))
    .order_by(_OTHERS.c.committed_at.desc(), _OTHERS.c.sha.desc())
    .limit(1)
    .offset(WINDOW - 1)
    .correlate(_SERIES)
    .scalar_subquery()
)
# Without statistics, SQLite would find points by a plain upper limit, and ask for the oldest of each of them.
_UP_TO_LAST = sa.func.coalesce(_POINTS.c.committed_at, 0.0) <= sa.bindparam("last")
_WINDOWS = (
    sa.select(_POINTS.c.series_id, _POINTS.c.id, _POINTS.c.sha, _POINTS.c.committed_at)
    .select_from(_SERIES.join(_POINTS, _POINTS.c.series_id == _SERIES.c.id))
    .where(_SERIES.c.id.in_(sa.bindparam("numbers", expanding=True)), _POINTS.c.linked)
    .where(_POINTS.c.committed_at >= sa.func.coalesce(_OLDEST, 0.0), _UP_TO_LAST)
    .order_by(_POINTS.c.series_id, _POINTS.c.committed_at, _POINTS.c.sha)
)
_FLAKY = (
    sa.select(_CHANGES.c.series_id, _CHANGES.c.ordinal)
    .where(_CHANGES.c.point_id.in_(sa.bindparam("points", expanding=True)), schema.OF_FLAKY)
    .distinct()
)


def explained_ordinals(
    connection: sa.Connection,
    suites: Mapping[int, SuiteRow],
    columns: Mapping[int, Sequence[PointColumn]],
    aliases: Aliases,
) -> dict[SeriesCommit, list[int]]:
    """Return which failures in some columns of each series are explained, by series and commit.

    Flaky results are left out: that the test also passed explains those. `suites` has the suite of each series.
    """
    if not columns:
        return {}
    windows = linked_windows(
        connection, {series: [point.position for point in points] for series, points in columns.items()}
    )
    flaky = _flaky_ordinals(connection, windows)
    for series, points in columns.items():
        # The index has no change of a test that was flaky all the time, up to a run outside of the series.
        # An alias may join it with a test that fails under another name.
        flaky[series].update(
            *(
                marked_places(point.linked.translate(IS_FLAKY)) if aliases else flaky_places(point.linked, point.column)
                for point in points
            )
        )
    had_both = sorted(series for series, ordinals in flaky.items() if ordinals)
    renames = defaultdict[int, list[PointRenames]](list)
    for point_renames in renames_of(connection, had_both) if had_both else ():
        renames[point_renames.series_id].append(point_renames)
    spans: dict[int, dict[int, list[NameSpan]]] = {}
    for series in had_both:
        names = _joined_names(connection, suites.get(series), aliases, renames[series], flaky[series])
        candidates = {ordinal for point in columns[series] for ordinal in _failures_of(point, names)}
        if candidates:
            for point in columns[series] if aliases else ():
                failures = _failures_of(point, candidates)
                names_then = names_in(connection, suites[series], aliases, point.linked, failures, point.column)
                candidates.update(names_then.values())
            name_of = all_names(connection, suites[series]) if aliases else ()
            series_renames = series_names(connection, series, name_of, aliases, candidates, renames[series])
            spans[series] = {ordinal: list(series_renames.spans(ordinal)) for ordinal in candidates}
    names_of_series = {
        series: {name for name_spans in spans_of.values() for name, _, _ in name_spans}
        for series, spans_of in spans.items()
    }
    first = min((window[0].committed_at for series in spans if (window := windows.get(series))), default=0.0)
    changes = changes_since(connection, names_of_series, first) if names_of_series else {}
    positions = {series: [(linked.committed_at, linked.sha) for linked in windows.get(series, ())] for series in spans}
    explained: dict[SeriesCommit, list[int]] = {}
    for series, spans_of in spans.items():
        for point in columns[series]:
            failures = _failures_of(point, spans_of)
            names_then = {ordinal: ordinal for ordinal in failures}
            if aliases:
                names_then = names_in(connection, suites[series], aliases, point.linked, failures, point.column)
            ordinals = [
                ordinal
                for ordinal, name in sorted(names_then.items())
                if _is_explained(point, ordinal, spans_of[name], changes[series], positions[series])
            ]
            if ordinals:
                explained[series, point.position[1]] = ordinals
    return explained


def flaky_places(linked: bytes, column: bytes) -> list[int]:
    """Return the tests that are flaky in a linked column, and fail in another one."""
    if linked is column:
        return []
    return marked_places(both_marked(linked.translate(IS_FLAKY), column.translate(IS_FAILURE)))


def names_of_flaky_tests(
    connection: sa.Connection,
    series: int,
    suite: SuiteRow,
    window: Sequence[LinkedPoint],
    last: Iterable[int],
    aliases: Aliases,
) -> set[int]:
    """Return all names of the tests of a series that were flaky in a window.

    `last` are those at the last commit of the window: if they were flaky all the time, the index has no change of them.
    """
    flaky = _flaky_ordinals(connection, {series: window})[series].union(last)
    renames = renames_of(connection, [series]) if flaky else []
    return _joined_names(connection, suite, aliases, renames, flaky)


def _failures_of(point: PointColumn, tests: Iterable[int]) -> set[int]:
    """Return which of some tests fail in a column, and are of interest there."""
    return {
        ordinal
        for ordinal in tests
        if at(point.column, ordinal) in FAILS and (point.ordinals is None or ordinal in point.ordinals)
    }


def _joined_names(
    connection: sa.Connection,
    suite: SuiteRow | None,
    aliases: Aliases,
    renames: Sequence[PointRenames],
    ordinals: Collection[int],
) -> set[int]:
    """Return all names of some tests, by detected renames and by aliases, including their own.

    Only aliases need the suite.
    """
    if not aliases:
        return all_names_of(renames, ordinals)
    assert suite is not None
    name_of, ordinal_of = all_names(connection, suite), ordinals_by_name(connection, suite)
    names, waiting = set[int](), set(ordinals)
    while waiting:
        names |= waiting
        others = {
            ordinal_of[other]
            for ordinal in waiting
            for other in aliases.others(name_of[ordinal])
            if other in ordinal_of
        }
        waiting = all_names_of(renames, names | others) - names
    return names


def _is_explained(
    point: PointColumn,
    ordinal: int,
    spans: Sequence[NameSpan],
    changes: ChangesOf,
    positions: Sequence[Position],
) -> bool:
    """Return whether the known flakiness of a test explains its failure at one commit.

    `ordinal` is the test's number in the columns of `point`; `spans` and `changes` say under which names it ran and how
    it ended. `positions` are the commits of the series' runs whose changes are stored, oldest first.
    """
    end = bisect_right(positions, point.position)
    window = positions[max(0, end - WINDOW) : end]
    run_count = len(window)
    history = segments_over(spans, changes, window, at(point.linked, last_name(spans, window)))
    # A commit that is no point of the series, such as a pull request's, counts as one more run after the window.
    if not window or window[-1] != point.position:
        history = [*history, (run_count, SEEN[at(point.column, ordinal)])]
        run_count += 1
    return flakiness_of(history, run_count).explains


def quarantined_failures(
    connection: sa.Connection,
    suite: SuiteRow,
    quarantine: Quarantine,
    column: bytes,
    ordinals: Collection[int] | None = None,
) -> list[int]:
    """Return the quarantined tests that fail in a status column of a suite.

    With `ordinals`, only those of them.
    """
    if quarantine.prefixes:
        candidates = marked_places(column.translate(IS_FAILURE)) if ordinals is None else ordinals
        name_of = all_names(connection, suite)
        tests = {ordinal for ordinal in candidates if quarantine.of(name_of[ordinal])}
    else:
        # A broken lab may have 100,000 failures, and app.yaml names a few tests.
        named = {find_ordinal(connection, suite, test) for test in quarantine.exact}
        tests = {ordinal for ordinal in named if ordinal is not None and (ordinals is None or ordinal in ordinals)}
    return sorted(ordinal for ordinal in tests if at(column, ordinal) in FAILS)


def linked_windows(
    connection: sa.Connection, positions: Mapping[int, Sequence[Position]], last: float | None = None
) -> dict[int, list[LinkedPoint]]:
    """Return the linked points of each series, oldest first, that the windows of some commits may contain.

    They begin with the window of the oldest of all these commits, and end with the newest commit, or at the time
    `last`, in seconds since 1970.
    """
    moments = [committed_at for commits in positions.values() for committed_at, _ in commits]
    windows: dict[int, list[LinkedPoint]] = {}
    numbers = sorted(positions)
    for chunk in schema.in_chunks(numbers):
        values = {"numbers": chunk, "first": min(moments), "last": max(moments) if last is None else last}
        for series, number, sha, committed_at in connection.execute(_WINDOWS, values).all():
            windows.setdefault(series, []).append(LinkedPoint(number, sha, committed_at))
    return windows


def _flaky_ordinals(
    connection: sa.Connection, windows: Mapping[int, Collection[LinkedPoint]]
) -> defaultdict[int, set[int]]:
    """Return the tests of each series that became flaky, or ceased to be, at one of its points."""
    points = sorted(point.id for window in windows.values() for point in window)
    flaky = defaultdict[int, set[int]](set)
    for chunk in schema.in_chunks(points):
        for series, ordinal in connection.execute(_FLAKY, {"points": chunk}).all():
            flaky[series].add(ordinal)
    return flaky
