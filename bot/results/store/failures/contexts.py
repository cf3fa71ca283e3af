"""The context of failures: since when a test fails, how often it failed before, and on which other targets it fails.

However many failures of a suite are asked about, on however many targets at one commit, it takes the same few
statements, each of which an index answers.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from nightjar_formats.columns import at
from nightjar_formats.model import TargetKey

from bot.core.aliases import Aliases
from bot.results.compare.context import FailureContext, failure_context
from bot.results.store.history.windows import TestsInWindow, window_histories
from bot.results.store.tables import schema
from bot.results.store.tables.cells import FAILS
from bot.results.store.tables.names import SuiteNames, SuiteRow
from bot.results.store.tables.points import (
    LinkedPoint,
    Place,
    Position,
    SuiteOnTarget,
    newest_points,
    numbers_of,
    status_columns,
    stored_runs,
    suites_on_targets,
)

MOST_RUNS = 400
"""Earlier runs that are read, at most: more than a year of nightly runs."""
MOST_TARGETS = 50
"""Other targets that are read, at most; those with the newest runs come first."""
RECENT = 30 * 86400.0
"""Seconds after which the newest run of another target no longer says that a test fails there."""


@dataclass(frozen=True, slots=True)
class ContextQuery:
    """Failing tests of a suite, and the commit that its run was compared with; empty if there is none."""

    baseline: str
    tests: Collection[str]


NOWHERE: Place = (0, "", "")


@dataclass(frozen=True, slots=True)
class TargetContextQuery:
    """Tests that fail at the commit `sha` of a suite on a target; `baseline` is as in `ContextQuery`."""

    one: SuiteOnTarget
    sha: str
    baseline: str
    tests: Collection[str]


def of_suite(
    connection: sa.Connection,
    known: SuiteNames,
    about: TargetKey,
    name: str,
    sha: str,
    asked: ContextQuery,
    aliases: Aliases,
    most_runs: int = MOST_RUNS,
) -> dict[str, FailureContext]:
    """Return the contexts of tests of a suite that fail at a commit on a target.

    `aliases` are the names of tests that maintainers renamed; `most_runs` is how many earlier runs are read.
    """
    for one in suites_on_targets(connection, about.repository, about.lab, about.target, name):
        on_target = TargetContextQuery(one, sha, asked.baseline, asked.tests)
        return of_targets(connection, known, [on_target], aliases, most_runs)[one.series]
    return {}


def of_targets(
    connection: sa.Connection,
    known: SuiteNames,
    asked: Sequence[TargetContextQuery],
    aliases: Aliases,
    most_runs: int = MOST_RUNS,
) -> dict[int, dict[str, FailureContext]]:
    """Return the contexts of tests of one suite that fail on some targets, by series and test."""
    row, suite = asked[0].one.row, asked[0].one.suite
    earlier, others = _earlier(connection, asked, most_runs + 1), _others(connection, asked)
    baselines_of = {of.one.series: (of.one.target_id, of.baseline, suite) for of in asked if of.baseline}
    read = {*baselines_of.values(), *(place for of in others.values() for place in of)}
    columns = status_columns(connection, numbers_of(stored_runs(connection, read)))
    places = known.places(connection, row)
    tests = {of.one.series: {places[test]: test for test in of.tests if test in places} for of in asked}
    # One more was read, only to see whether there are older ones.
    windows = {series: points[-most_runs:] for series, points in earlier.items()}
    in_window = [
        TestsInWindow(
            of.one,
            windows.get(of.one.series, []),
            columns.get(baselines_of.get(of.one.series, NOWHERE), b""),
            list(tests[of.one.series]),
        )
        for of in asked
    ]
    pasts = window_histories(connection, known, in_window, aliases)
    return {
        series: {
            test: failure_context(
                pasts.get(series, {}).get(ordinal, ()),
                [point.sha for point in windows.get(series, ())],
                older=len(earlier.get(series, ())) > most_runs,
                also_on=[
                    where for place, where in others[series].items() if at(columns.get(place, b""), ordinal) in FAILS
                ],
            )
            for ordinal, test in of.items()
        }
        for series, of in tests.items()
    }


def _positions(connection: sa.Connection, asked: Sequence[TargetContextQuery]) -> dict[int, Position]:
    """Return the position of the commit that is asked about in each series that has it."""
    points = schema.points
    sha_of = {of.one.series: of.sha for of in asked}
    statement = sa.select(points.c.series_id, points.c.committed_at, points.c.sha).where(
        points.c.series_id.in_(sha_of), points.c.sha.in_({*sha_of.values()})
    )
    # The statement also finds other commits that are asked about, in series where they are not.
    return {
        row.series_id: (row.committed_at, row.sha)
        for row in connection.execute(statement)
        if row.sha == sha_of[row.series_id]
    }


def _earlier(connection: sa.Connection, asked: Sequence[TargetContextQuery], most: int) -> dict[int, list[LinkedPoint]]:
    """Return the last runs of each series up to its baseline, in their order."""
    with_baseline = defaultdict[str, list[int]](list)
    for of in asked:
        if of.baseline:
            with_baseline[of.baseline].append(of.one.series)
    found = dict[int, list[LinkedPoint]]()
    for baseline, series in with_baseline.items():
        found |= newest_points(connection, series, most, until=baseline)
    return found


def _others(connection: sa.Connection, asked: Sequence[TargetContextQuery]) -> dict[int, dict[Place, str]]:
    """Return the newest run of the suite on each other target, up to a commit, with the name of the target, by series.

    A run of the same commit comes first, whether it is on the nightly branch or not.
    """
    found: dict[int, dict[Place, str]] = {of.one.series: {} for of in asked}
    at_position = defaultdict[Position, list[SuiteOnTarget]](list)
    positions = _positions(connection, asked)
    for of in asked:
        if of.one.series in positions:
            at_position[positions[of.one.series]].append(of.one)
    for position, those in at_position.items():
        lists = [connection.execute(statement).all() for statement in _runs_elsewhere(those[0].row, position)]
        for one in those:
            newest: dict[int, tuple[str, str]] = {}
            # The same commit first: `setdefault` keeps the first run of each target.
            for rows in lists:
                for row in [row for row in rows if row.id != one.target_id][:MOST_TARGETS]:
                    newest.setdefault(row.id, (row.sha, f"{row.lab}/{row.target}"))
            by_name = sorted(newest.items(), key=lambda item: item[1][1])[:MOST_TARGETS]
            found[one.series] = {(number, sha, one.suite): where for number, (sha, where) in by_name}
    return found


def _runs_elsewhere(suite: SuiteRow, here: Position) -> Iterator[sa.Select[Any]]:
    """Yield statements for runs of a suite on all targets: of a commit, then the newest nightly ones up to there."""
    series, points, targets = schema.series, schema.points, schema.targets
    candidate = points.alias()
    newest = (
        sa.select(candidate.c.id)
        .where(candidate.c.series_id == series.c.id, candidate.c.linked, candidate.c.committed_at <= here[0])
        .order_by(candidate.c.committed_at.desc(), candidate.c.sha.desc())
        .limit(1)
        .correlate(series)
        .scalar_subquery()
    )
    every = sa.select(targets.c.id, targets.c.lab, targets.c.target, points.c.sha).where(series.c.suite_id == suite.id)
    same = every.select_from(
        series.join(targets).join(points, sa.and_(points.c.series_id == series.c.id, points.c.sha == here[1]))
    ).where(points.c.complete, points.c.infra == "")
    nightly = every.select_from(series.join(targets).join(points, points.c.id == newest))
    nightly = nightly.where(points.c.committed_at >= here[0] - RECENT).order_by(points.c.committed_at.desc())
    # One of them may be the target that is asked about.
    for statement in (same, nightly):
        yield statement.limit(MOST_TARGETS + 1)
