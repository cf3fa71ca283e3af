"""Compute how flaky tests are at a commit, from the earlier runs of the nightly branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from nightjar_formats.model import SeenTest, TargetKey

from bot.core.aliases import NO_ALIASES, Aliases
from bot.results.compare.flaky import WINDOW, Flakiness, flakiness_of
from bot.results.store.history.series_names import series_names
from bot.results.store.history.windows import TestsInWindow, histories, window_histories
from bot.results.store.tables import names, runs, schema
from bot.results.store.tables.names import all_names, find_ordinal, ordinals_by_name
from bot.results.store.tables.points import SuiteOnTarget, newest_columns, newest_points


def flakiness_of_tests(
    connection: sa.Connection,
    target: TargetKey,
    suite: str,
    sha: str,
    results: Mapping[str, SeenTest],
    aliases: Aliases = NO_ALIASES,
) -> dict[str, Flakiness]:
    """Return the flakiness of tests of a suite up to a commit, at which they have these results."""
    target_id, row = runs.target_id(connection, target), names.find(connection, target.repository, suite)
    if not results or target_id is None or row is None:
        return {}
    points = schema.points
    series = sa.select(schema.series.c.id).filter_by(target_id=target_id, suite_id=row.id)
    point = connection.execute(
        sa.select(points.c.series_id, points.c.committed_at).where(points.c.series_id.in_(series), points.c.sha == sha)
    ).first()
    if point is None:
        return {}
    position = sa.tuple_(sa.literal(point.committed_at, sa.Double), sa.literal(sha, sa.Text))
    statement = (
        sa.select(points.c.id, points.c.committed_at, points.c.sha)
        .where(points.c.series_id == point.series_id, points.c.linked)
        .where(sa.tuple_(points.c.committed_at, points.c.sha) <= position)
        .order_by(points.c.committed_at.desc(), points.c.sha.desc())
        .limit(WINDOW)
    )
    window = connection.execute(statement).all()[::-1]
    # Nothing to compare with: the result at the commit itself is all that is known.
    if not window:
        return {test: flakiness_of([(0, seen)], 1) for test, seen in results.items()}
    chain = [(row.committed_at, row.sha) for row in window]
    column = runs.statuses(connection, [runs.stored(runs.reported(connection, target_id, chain[-1][1], suite))])[0]
    name_of = all_names(connection, row)
    ordinal_of = ordinals_by_name(connection, row)
    ordinals = sorted(ordinal_of[test] for test in results if test in ordinal_of)
    renames = series_names(connection, point.series_id, name_of, aliases, ordinals)
    ids = [row.id for row in window]
    segments = histories(connection, point.series_id, renames, chain, column, ordinals, ids)
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
