"""The context of failures: since when a test fails, how often it failed before, and on which other targets it fails.

However many failures of a suite are asked about, it takes the same few statements, each of which an index answers.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from nightjar_formats.columns import at
from nightjar_formats.model import TargetKey

from bot.core.aliases import Aliases
from bot.results.compare.context import FailureContext, failure_context
from bot.results.store import names, runs, schema
from bot.results.store.failures import FAILS, histories, newest_runs
from bot.results.store.history import baselines
from bot.results.store.names import SuiteNames, SuiteRow
from bot.results.store.renamed import series_names
from bot.results.store.trace import Position

MOST_RUNS = 400
"""Earlier runs that are read, at most: more than a year of nightly runs."""
MOST_TARGETS = 50
"""Other targets that are read, at most; those with the newest runs come first."""
RECENT = 30 * 86400.0
"""Seconds after which the newest run of another target no longer says that a test fails there."""


@dataclass(frozen=True, slots=True)
class AskedFailures:
    """Failing tests of a suite, and the commit that its run was compared with; empty if there is none."""

    baseline: str
    tests: Collection[str]


@dataclass(frozen=True, slots=True)
class FailingTest:
    """A test that fails in the newest nightly run of its suite, the commit `sha`."""

    suite: str
    test: str
    sha: str
    context: FailureContext


Place = tuple[int, str]
"""A target's number, and a commit."""


def of_suite(
    connection: sa.Connection,
    known: SuiteNames,
    about: TargetKey,
    name: str,
    sha: str,
    asked: AskedFailures,
    aliases: Aliases,
    most_runs: int = MOST_RUNS,
) -> dict[str, FailureContext]:
    """Return the contexts of tests of a suite that fail at a commit on a target.

    `aliases` are the names of tests that maintainers renamed; `most_runs` is how many earlier runs are read.
    """
    target, suite = runs.target_id(connection, about), names.find(connection, about.repository, name)
    if target is None or suite is None:
        return {}
    series = connection.execute(
        sa.select(schema.series.c.id).filter_by(target_id=target, suite_id=suite.id)
    ).scalar_one()
    positions = _positions(connection, series, {sha, asked.baseline})
    chain, older = _earlier(connection, series, positions.get(asked.baseline), most_runs)
    others = _others(connection, suite, target, positions.get(sha))
    before, *elsewhere = _columns(connection, name, [(target, asked.baseline), *others])
    # One pass: a suite may have 300,000 names.
    name_of, wanted = known.every(connection, suite), set(asked.tests)
    ordinals = {ordinal: test for ordinal, test in enumerate(name_of) if test in wanted}
    past = {}
    if chain:
        renames = series_names(connection, series, name_of, aliases, ordinals)
        past = dict(histories(connection, series, renames, chain, before, list(ordinals)))
    shas = [one for _, one in chain]
    return {
        test: failure_context(
            past.get(ordinal, ()),
            shas,
            older=older,
            also_on=[
                where for where, column in zip(others.values(), elsewhere, strict=True) if at(column, ordinal) in FAILS
            ],
        )
        for ordinal, test in ordinals.items()
    }


def failing_now(
    connection: sa.Connection, known: SuiteNames, about: TargetKey, limit: int, aliases: Aliases
) -> tuple[list[FailingTest], int]:
    """Return tests that fail in the newest nightly runs of a target, at most `limit`, and how many fail in all."""
    target, newest = runs.target_id(connection, about), newest_runs(connection, about)
    found = list[FailingTest]()
    for run in sorted(newest, key=lambda one: one.suite):
        suite, room = names.find(connection, about.repository, run.suite), limit - len(found)
        if target is None or suite is None or not run.failing or room <= 0:
            continue
        (column,) = _columns(connection, run.suite, [(target, run.sha)])
        name_of = known.every(connection, suite)
        tests = sorted(name_of[ordinal] for ordinal, byte in enumerate(column) if byte in FAILS)[:room]
        before = baselines(connection, about, run.suite, run.sha, 1)
        asked = AskedFailures(before[0].sha if before else "", tests)
        contexts = of_suite(connection, known, about, run.suite, run.sha, asked, aliases)
        found += [FailingTest(run.suite, test, run.sha, contexts[test]) for test in tests]
    return found, sum(run.failing for run in newest)


def _positions(connection: sa.Connection, series: int, shas: Collection[str]) -> dict[str, Position]:
    points = schema.points
    statement = sa.select(points.c.committed_at, points.c.sha).where(
        points.c.series_id == series, points.c.sha.in_(shas)
    )
    return {row.sha: (row.committed_at, row.sha) for row in connection.execute(statement)}


def _earlier(connection: sa.Connection, series: int, until: Position | None, most: int) -> tuple[list[Position], bool]:
    """Return the last runs of a series up to one, in their order, and whether there are older ones."""
    if until is None:
        return [], False
    points = schema.points
    last = sa.tuple_(sa.literal(until[0], sa.Double), sa.literal(until[1], sa.Text))
    statement = (
        sa.select(points.c.committed_at, points.c.sha)
        .where(points.c.series_id == series, points.c.linked)
        .where(sa.tuple_(points.c.committed_at, points.c.sha) <= last)
        .order_by(points.c.committed_at.desc(), points.c.sha.desc())
        .limit(most + 1)
    )
    found = [(row.committed_at, row.sha) for row in connection.execute(statement)]
    # One more was read, only to see whether there are older ones. Reversed, because the query is newest first.
    return found[most - 1 :: -1], len(found) > most


def _others(connection: sa.Connection, suite: SuiteRow, target: int, here: Position | None) -> dict[Place, str]:
    """Return the newest run of a suite on each other target, up to a commit, with the name of the target.

    A run of the same commit comes first, whether it is on the nightly branch or not.
    """
    if here is None:
        return {}
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
    of_others = (series.c.suite_id == suite.id, series.c.target_id != target)
    every = sa.select(targets.c.id, targets.c.lab, targets.c.target, points.c.sha).where(*of_others)
    same = every.select_from(
        series.join(targets).join(points, sa.and_(points.c.series_id == series.c.id, points.c.sha == here[1]))
    ).where(points.c.complete, points.c.infra == "")
    nightly = every.select_from(series.join(targets).join(points, points.c.id == newest))
    nightly = nightly.where(points.c.committed_at >= here[0] - RECENT).order_by(points.c.committed_at.desc())
    found: dict[int, tuple[str, str]] = {}
    # The same commit first: `setdefault` keeps the first run of each target.
    for statement in (same, nightly):
        for row in connection.execute(statement.limit(MOST_TARGETS)):
            found.setdefault(row.id, (row.sha, f"{row.lab}/{row.target}"))
    by_name = sorted(found.items(), key=lambda one: one[1][1])[:MOST_TARGETS]
    return {(number, sha): where for number, (sha, where) in by_name}


def _columns(connection: sa.Connection, suite: str, places: Sequence[Place]) -> list[bytes]:
    """Return the merged status column of a suite at each of some places."""
    reported = runs.reported_runs_at(connection, places, suite)
    return runs.statuses(connection, [runs.stored(reported.get(place, [])) for place in places])
