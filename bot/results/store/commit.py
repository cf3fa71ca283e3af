"""The combined results of all runs of a commit on a target."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import compress

import sqlalchemy as sa
from nightjar_formats.columns import duration
from nightjar_formats.columns.collect import Reason
from nightjar_formats.model import SeenTest, TargetKey
from nightjar_formats.runs.shared_outcomes import ColumnOutcomes

from bot.results.state import Run, RunState, SuiteState, TargetState
from bot.results.store.tables import combine, names, runs, schema
from bot.results.store.tables.blobs import raw
from bot.results.store.tables.cells import IS_PRESENT
from bot.results.store.tables.failure_texts import TextReader
from bot.results.store.tables.names import all_names, names_of
from bot.results.store.write import pending_checks


def commit_state(connection: sa.Connection, target: TargetKey, sha: str) -> TargetState:
    """Return all that is known about a commit on a target; the order of arrival does not matter."""
    reported = runs.reported_on_target(connection, target, sha)
    admission, missing = reported.admission, pending_checks.missing_suites(connection, sha, reported)
    suites: dict[str, SuiteState] = {}
    for suite_name in sorted({run.claims.suite for run in reported.runs if run.claims}):
        of_suite = [(number, run) for number, run in reported.numbered if run.claims and run.claims.suite == suite_name]
        suites[suite_name] = _suite_state(connection, target.repository, suite_name, of_suite)
    return TargetState(
        target,
        sha,
        suites,
        admission.pull_request if admission else None,
        admission.mainline if admission else False,
        missing,
    )


def _suite_state(
    connection: sa.Connection, repository: str, suite_name: str, reported: list[tuple[int, Run]]
) -> SuiteState:
    """Return the combined result of the runs of a suite at a commit; `reported` are its numbered runs."""
    shards = runs.shards(run for _, run in reported)
    stored = [number for number, run in reported if run.state is RunState.STORED]
    seen, reasons = _verdicts(connection, repository, suite_name, stored)
    return SuiteState(
        suite_name,
        tuple(run for _, run in reported),
        seen,
        combine.Details(reasons, TextReader(connection.engine.begin).text),
        shards.total,
        shards.missing,
        shards.waiting,
        shards.broken,
    )


def seen_tests(connection: sa.Connection, target: TargetKey, suite: str, sha: str) -> Mapping[str, SeenTest]:
    """Return the verdict of each test of a suite at a commit; empty if nothing is stored."""
    reported = runs.reported_on_target(connection, target, sha, suite)
    return _verdicts(connection, target.repository, suite, reported.stored)[0]


def outcomes_of_same_tests(
    connection: sa.Connection, target: TargetKey, suite: str, sha: str, earlier_sha: str
) -> Mapping[str, SeenTest] | None:
    """Return how the tests of a suite at a commit ended at an earlier one, without reasons, which take long to read.

    None if the earlier commit has other tests.
    """
    target_id = runs.target_id(connection, target)
    row = names.find(connection, target.repository, suite)
    if target_id is None or row is None:
        return None
    column, earlier = runs.suite_columns(connection, target_id, suite, [sha, earlier_sha])
    if column.translate(IS_PRESENT).rstrip(b"\0") != earlier.translate(IS_PRESENT).rstrip(b"\0"):
        return None
    return ColumnOutcomes(names_of(connection, row), earlier, {})


def durations_of_commit(connection: sa.Connection, target: TargetKey, suite: str, sha: str) -> dict[str, float]:
    """Return how many seconds each test of a suite took at a commit, from the last run that reported it.

    They are at most three percent off (`nightjar_formats.columns`).
    """
    table = schema.columns
    row = names.find(connection, target.repository, suite)
    if row is None or not (numbers := runs.reported_on_target(connection, target, sha, suite).stored):
        return {}
    statement = sa.select(table.c.run_id, table.c.durations).where(table.c.run_id.in_(numbers))
    stored = {row.run_id: raw(row.durations) for row in connection.execute(statement)}
    name_of = all_names(connection, row)
    seconds: dict[str, float] = {}
    # In the order of the runs, so that a later one replaces what earlier ones measured. Code 0 is no duration.
    for column in (stored[number] for number in numbers):
        timed = (duration(code) or 0.0 for code in column if code)
        seconds.update(zip(compress(name_of, column), timed, strict=True))
    return seconds


def _verdicts(
    connection: sa.Connection, repository: str, suite: str, stored: Sequence[int]
) -> tuple[Mapping[str, SeenTest], Mapping[str, Reason]]:
    """Return how each test of a suite ended in stored runs, and why; nothing if there are none."""
    row = names.find(connection, repository, suite)
    if row is None or not stored:
        return {}, {}
    return combine.verdicts(names_of(connection, row), runs.columns(connection, stored))
