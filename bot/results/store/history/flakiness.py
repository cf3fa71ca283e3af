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
from bot.results.store.history.windows import TestsInWindow, histories, names_in, window_histories
from bot.results.store.tables import schema
from bot.results.store.tables.cells import IS_FLAKY, marked_places
from bot.results.store.tables.names import find_ordinal, names_of, ordinals_by_name
from bot.results.store.tables.points import LinkedPoint, SuiteOnTarget, newest_points, suites_on_targets
from bot.results.store.tables.runs import columns_at


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
    flaky = names_of_flaky_tests(connection, window.suite.series, window.suite.row, window.points, last, aliases)
    ordinal_of = ordinals_by_name(connection, window.suite.row)
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

    suite: SuiteOnTarget
    points: Sequence[LinkedPoint]
    column: bytes


def _window(connection: sa.Connection, target: TargetKey, suite_name: str, sha: str) -> _Window | None:
    """Return the window of a commit; None if the suite has no run of it."""
    suites = suites_on_targets(connection, target.repository, target.lab, target.target, suite_name)
    if not suites:
        return None
    (suite,) = suites
    linked = newest_points(connection, [suite.series], WINDOW, until=sha).get(suite.series, [])
    if linked:
        place = suite.place_at(linked[-1].sha)
        return _Window(suite, linked, columns_at(connection, [place]).get(place, b""))
    points = schema.points
    of_commit = sa.select(points.c.id).where(points.c.series_id == suite.series, points.c.sha == sha)
    return _Window(suite, [], b"") if connection.execute(of_commit).first() else None


def _flakiness(
    connection: sa.Connection, window: _Window, sha: str, results: Mapping[str, SeenTest], aliases: Aliases
) -> dict[str, Flakiness]:
    """Return the flakiness of tests up to a commit, whose window has points."""
    chain = [(point.committed_at, point.sha) for point in window.points]
    suite_names = names_of(connection, window.suite.row)
    name_of, ordinal_of = suite_names.ordered, suite_names.ordinals
    named = [ordinal_of[test] for test in results if test in ordinal_of]
    names_then = {ordinal: ordinal for ordinal in named}
    if aliases:
        place = window.suite.place_at(sha)
        now = columns_at(connection, [place]).get(place, b"")
        names_then = names_in(connection, window.suite.row, aliases, window.column, named, now)
    ordinals = sorted({*names_then.values()})
    renames = series_names(connection, window.suite.series, name_of, aliases, ordinals)
    ids = [point.id for point in window.points]
    histories_then = dict(histories(connection, window.suite.series, renames, chain, window.column, ordinals, ids))
    if chain[-1][1] == sha:
        return {
            name_of[ordinal]: flakiness_of(histories_then[name], len(chain)) for ordinal, name in names_then.items()
        }
    # The commit is not in the series, for example the head of a pull request, so its run comes after the series'.
    return {
        name_of[ordinal]: flakiness_of([*histories_then[name], (len(chain), results[name_of[ordinal]])], len(chain) + 1)
        for ordinal, name in names_then.items()
    }


def flakiness_at_newest_runs(
    connection: sa.Connection, suites: Sequence[SuiteOnTarget], test: str, aliases: Aliases = NO_ALIASES
) -> dict[int, tuple[str, Flakiness]]:
    """Return the commit of the newest run of each suite that has a test, and how flaky the test is there, by series."""
    windows = newest_points(connection, [suite.series for suite in suites], WINDOW)
    places = {
        suite.series: suite.place_at(windows[suite.series][-1].sha) for suite in suites if suite.series in windows
    }
    columns = columns_at(connection, places.values())
    ordinals = {suite.series: find_ordinal(connection, suite.row, test) for suite in suites}
    tests_in_windows = [
        TestsInWindow(suite, windows[suite.series], columns[place], [ordinal])
        for suite in suites
        if (place := places.get(suite.series)) in columns and (ordinal := ordinals[suite.series]) is not None
    ]
    histories = window_histories(connection, tests_in_windows, aliases)
    return {
        tests.suite.series: (tests.window[-1].sha, flakiness_of(history, len(tests.window)))
        for tests in tests_in_windows
        for history in histories[tests.suite.series].values()
    }
