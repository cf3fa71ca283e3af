"""Compute how flaky tests are at a commit, from the earlier runs of the nightly branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from nightjar_formats.model import SeenTest, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.flaky import WINDOW, Flakiness, flakiness_of
from bot.results.store.history.explained import names_of_flaky_tests
from bot.results.store.history.series_names import series_names
from bot.results.store.history.windows import TestsInWindow, histories, window_histories
from bot.results.store.tables import names, runs, schema
from bot.results.store.tables.cells import IS_FLAKY, marked_places
from bot.results.store.tables.names import SuiteRow, all_names, find_ordinal, ordinals_by_name
from bot.results.store.tables.points import LinkedPoint, SuiteOnTarget, newest_columns, newest_points


def known_flaky_tests(
    connection: sa.Connection,
    target: TargetKey,
    suite: str,
    sha: str,
    failures: Mapping[str, SeenTest],
    aliases: Aliases = NO_ALIASES,
) -> dict[str, Flakiness]:
    """Return the tests of a suite whose flakiness explains that they fail at a commit.

    Of any number of `failures`, only the tests that were flaky in the window are followed from run to run.
    """
    window = _window(connection, target, suite, sha) if failures else None
    if window is None or not window.points:
        return {}
    last = marked_places(window.column.translate(IS_FLAKY))
    flaky = names_of_flaky_tests(connection, window.series, window.suite, window.points, last, aliases)
    ordinal_of = ordinals_by_name(connection, window.suite)
    candidates = {test: seen for test, seen in failures.items() if seen.flaky or ordinal_of.get(test) in flaky}
    flakiness = _flakiness(connection, window, sha, candidates, aliases) if candidates else {}
    return {test: of_test for test, of_test in flakiness.items() if of_test.explains}


def flakiness_of_tests(
    connection: sa.Connection,
    target: TargetKey,
    suite: str,
    sha: str,
    results: Mapping[str, SeenTest],
    aliases: Aliases = NO_ALIASES,
) -> dict[str, Flakiness]:
    """Return the flakiness of tests of a suite up to a commit, at which they have these results."""
    window = _window(connection, target, suite, sha) if results else None
    if window is None:
        return {}
    # Nothing to compare with: the result at the commit itself is all that is known.
    if not window.points:
        return {test: flakiness_of([(0, seen)], 1) for test, seen in results.items()}
    return _flakiness(connection, window, sha, results, aliases)


@dataclass(frozen=True, slots=True)
class _Window:
    """The linked points of a suite on a target up to a commit, oldest first; `column` is that of the last of them."""

    series: int
    suite: SuiteRow
    points: Sequence[LinkedPoint]
    column: bytes


def _window(connection: sa.Connection, target: TargetKey, suite: str, sha: str) -> _Window | None:
    """Return the window of a commit; None if the suite has no run of it."""
    target_id, row = runs.target_id(connection, target), names.find(connection, target.repository, suite)
    if target_id is None or row is None:
        return None
    points = schema.points
    series = sa.select(schema.series.c.id).filter_by(target_id=target_id, suite_id=row.id)
    point = connection.execute(
        sa.select(points.c.series_id, points.c.committed_at).where(points.c.series_id.in_(series), points.c.sha == sha)
    ).first()
    if point is None:
        return None
    position = sa.tuple_(sa.literal(point.committed_at, sa.Double), sa.literal(sha, sa.Text))
    statement = (
        sa.select(points.c.id, points.c.sha, points.c.committed_at)
        .where(points.c.series_id == point.series_id, points.c.linked)
        .where(sa.tuple_(points.c.committed_at, points.c.sha) <= position)
        .order_by(points.c.committed_at.desc(), points.c.sha.desc())
        .limit(WINDOW)
    )
    linked = [LinkedPoint(*linked_point) for linked_point in connection.execute(statement)][::-1]
    column = b""
    if linked:
        numbers = runs.stored(runs.reported(connection, target_id, linked[-1].sha, suite))
        column = runs.statuses(connection, [numbers])[0]
    return _Window(point.series_id, row, linked, column)


def _flakiness(
    connection: sa.Connection, window: _Window, sha: str, results: Mapping[str, SeenTest], aliases: Aliases
) -> dict[str, Flakiness]:
    """Return the flakiness of tests up to a commit, whose window has points."""
    chain = [(point.committed_at, point.sha) for point in window.points]
    name_of, ordinal_of = all_names(connection, window.suite), ordinals_by_name(connection, window.suite)
    ordinals = sorted(ordinal_of[test] for test in results if test in ordinal_of)
    renames = series_names(connection, window.series, name_of, aliases, ordinals)
    ids = [point.id for point in window.points]
    segments = histories(connection, window.series, renames, chain, window.column, ordinals, ids)
    if chain[-1][1] == sha:
        return {name_of[ordinal]: flakiness_of(history, len(chain)) for ordinal, history in segments}
    # The commit is not in the series, for example the head of a pull request, so its run comes after the series'.
    return {
        name_of[ordinal]: flakiness_of([*history, (len(chain), results[name_of[ordinal]])], len(chain) + 1)
        for ordinal, history in segments
    }


def flakiness_at_newest_runs(
    connection: sa.Connection, suites: Sequence[SuiteOnTarget], test: str, aliases: Aliases = NO_ALIASES
) -> dict[int, tuple[str, Flakiness]]:
    """Return the commit of the newest run of each suite that has a test, and how flaky the test is there, by series."""
    windows = newest_points(connection, [suite.series for suite in suites], WINDOW)
    columns = newest_columns(connection, suites)
    ordinals = {suite.series: find_ordinal(connection, suite.row, test) for suite in suites}
    tests_in_windows = [
        TestsInWindow(suite, windows[suite.series], columns[suite.series], [ordinal])
        for suite in suites
        if suite.series in columns and (ordinal := ordinals[suite.series]) is not None
    ]
    histories = window_histories(connection, tests_in_windows, aliases)
    return {
        tests.suite.series: (tests.window[-1].sha, flakiness_of(history, len(tests.window)))
        for tests in tests_in_windows
        for history in histories[tests.suite.series].values()
    }
