"""Compute how flaky tests are at a commit, from the earlier runs of the nightly branch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import sqlalchemy as sa
from nightjar_formats.model import SeenTest, TargetKey

from bot.core.aliases import Aliases
from bot.results.compare.flaky import WINDOW, Flakiness, flakiness_of
from bot.results.store.history.series_names import series_names
from bot.results.store.history.windows import TestsInWindow, histories, window_histories
from bot.results.store.tables import names, runs, schema
from bot.results.store.tables.names import SuiteNames
from bot.results.store.tables.points import SuiteOnTarget, newest_columns, newest_points


def of_tests(
    connection: sa.Connection,
    known: SuiteNames,
    about: TargetKey,
    suite: str,
    sha: str,
    now: Mapping[str, SeenTest],
    aliases: Aliases,
) -> dict[str, Flakiness]:
    """Return the flakiness of tests of a suite up to a commit, at which `now` are their results."""
    target, found = runs.target_id(connection, about), names.find(connection, about.repository, suite)
    if not now or target is None or found is None:
        return {}
    points = schema.points
    series = sa.select(schema.series.c.id).filter_by(target_id=target, suite_id=found.id)
    here = connection.execute(
        sa.select(points.c.series_id, points.c.committed_at).where(points.c.series_id.in_(series), points.c.sha == sha)
    ).first()
    if here is None:
        return {}
    position = sa.tuple_(sa.literal(here.committed_at, sa.Double), sa.literal(sha, sa.Text))
    until = (
        sa.select(points.c.id, points.c.committed_at, points.c.sha)
        .where(points.c.series_id == here.series_id, points.c.linked)
        .where(sa.tuple_(points.c.committed_at, points.c.sha) <= position)
        .order_by(points.c.committed_at.desc(), points.c.sha.desc())
        .limit(WINDOW)
    )
    window = connection.execute(until).all()[::-1]
    # Nothing to compare with: the result at the commit itself is all that is known.
    if not window:
        return {test: flakiness_of([(0, seen)], 1) for test, seen in now.items()}
    chain = [(row.committed_at, row.sha) for row in window]
    column = runs.statuses(connection, [runs.stored(runs.reported(connection, target, chain[-1][1], suite))])[0]
    name_of = known.all(connection, found)
    places = known.places(connection, found)
    ordinals = sorted(places[test] for test in now if test in places)
    renames = series_names(connection, here.series_id, name_of, aliases, ordinals)
    ids = [row.id for row in window]
    pasts = histories(connection, here.series_id, renames, chain, column, ordinals, ids)
    if chain[-1][1] == sha:
        return {name_of[ordinal]: flakiness_of(history, len(chain)) for ordinal, history in pasts}
    # The commit is not in the series, for example the head of a pull request, so its run comes after the series'.
    return {
        name_of[ordinal]: flakiness_of([*history, (len(chain), now[name_of[ordinal]])], len(chain) + 1)
        for ordinal, history in pasts
    }


def at_newest_runs(
    connection: sa.Connection, known: SuiteNames, suites: Sequence[SuiteOnTarget], test: str, aliases: Aliases
) -> dict[int, tuple[str, Flakiness]]:
    """Return the commit of the newest run of each suite that has a test, and how flaky the test is there, by series."""
    windows = newest_points(connection, [one.series for one in suites], WINDOW)
    columns = newest_columns(connection, suites)
    places = {one.series: known.ordinal(connection, one.row, test) for one in suites}
    asked = [
        TestsInWindow(one, windows[one.series], columns[one.series], [place])
        for one in suites
        if one.series in columns and (place := places[one.series]) is not None
    ]
    histories = window_histories(connection, known, asked, aliases)
    return {
        tests.one.series: (tests.window[-1].sha, flakiness_of(past, len(tests.window)))
        for tests in asked
        for past in histories[tests.one.series].values()
    }
