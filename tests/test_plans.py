"""No statement of the bot reads a whole large table, or sorts many rows, on either database.

`make plans-of-all` first runs all other tests, which write their statements to the folder in NIGHTJAR_STATEMENTS: a new
statement is covered by any test that runs it.
"""

from __future__ import annotations

import os
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing, suppress
from typing import NamedTuple

import pytest
from psycopg.types.json import Json

from bot.app.features import ALL_FEATURES
from bot.engine.jobs.steps import FINISH_NOTED
from bot.engine.sql.portable import translate
from tests.filled import fill_postgres, fill_sqlite
from tests.plans import MANY, PostgresPlans, SqlitePlans
from tests.postgres import PostgresServer
from tests.statements import FOLDER, POSTGRES, SQLITE, Statement, collected
from tests.tables import make_tables, with_tables

pytestmark = [pytest.mark.alone, pytest.mark.skipif(FOLDER not in os.environ, reason="make plans")]

IS_STATEMENT = re.compile(r"\s*(?:SELECT|INSERT|UPDATE|DELETE|WITH)\b.*\b(?:nightjar|procrastinate)_\w+", re.DOTALL)
"""A constant that is a statement about a table."""
SORTS = "sorts"
ENDS_EARLY = "it reads in the order of an index, and ends at its LIMIT"
LAST_OF_INDEX = "it asks for the highest value, which is the last of an index"
RETENTION = "it removes what is old, once an hour, and begins with the oldest"
COUNTS = "it counts what waits or runs for metrics and people, in a part of the table that an index holds"
OLDER_RELEASES = "deliveries of older releases are moved, at the first start"
NOT_CALLED = "Procrastinate offers it, and nothing of ours calls it"
AS_MUCH_AS_IT_SHOWS = "what it reads is what it returns, as the caller asked for it: a range of keys or of time"
FEW_HAVE_IT = "few jobs run or have failed, of all that are stored"
STILL_TO_BE_WRITTEN = "it reads what check runs are still to be written, which an index holds and nothing else"


class Exempt(NamedTuple):
    """Why a function's statements may read much of some tables, or sort much (`SORTS`)."""

    reason: str
    patterns: tuple[str, ...]

    def holds(self, step: str) -> bool:
        """Return whether a step is exempt."""
        return any(f" {subject} " in f"{step} " for subject in self.patterns)


def exempt(reason: str, *patterns: str) -> Exempt:
    return Exempt(reason, patterns)


EXCEPTIONS = {
    "bot/engine/jobs/journal.py:Journal._records": exempt(AS_MUCH_AS_IT_SHOWS, "procrastinate_jobs", SORTS),
    "bot/engine/jobs/journal.py:Journal.states": exempt(
        AS_MUCH_AS_IT_SHOWS, "procrastinate_jobs", "nightjar_notes", SORTS
    ),
    "bot/results/store/write/pending_checks.py:unfinished": exempt(
        STILL_TO_BE_WRITTEN, "nightjar_checks", "nightjar_runs", SORTS
    ),
    "bot/results/store/lists/run_lists.py:waiting_counts": exempt(COUNTS, "nightjar_runs", SORTS),
    "bot/results/store/lists/run_lists.py:commits_since": exempt(AS_MUCH_AS_IT_SHOWS, "nightjar_runs", SORTS),
    "bot/engine/budget.py:WriteBudget._rows": exempt("a budget has the writes of one hour", "nightjar_writes"),
    "bot/engine/jobs/journal.py:Journal.recent": exempt(ENDS_EARLY, "nightjar_inbox", "procrastinate_jobs", SORTS),
    "bot/engine/worker/manager.py:EngineJobManager._can_fetch": exempt(ENDS_EARLY, "procrastinate_jobs"),
    "bot/engine/worker/manager.py:EngineJobManager._fetch": exempt(ENDS_EARLY, "procrastinate_jobs"),
    "bot/engine/outage.py:release_waiting": exempt(COUNTS, "procrastinate_jobs"),
    "bot/engine/records.py:Records.under": exempt(AS_MUCH_AS_IT_SHOWS, "nightjar_records"),
    "bot/engine/records.py:Records.pages": exempt(AS_MUCH_AS_IT_SHOWS, "nightjar_records"),
    "bot/engine/records.py:Records.newest_under": exempt(AS_MUCH_AS_IT_SHOWS, "nightjar_records"),
    "bot/engine/service.py:Engine.open": exempt(OLDER_RELEASES, "procrastinate_jobs"),
    "bot/engine/service.py:Engine.backlog": exempt(COUNTS, "procrastinate_jobs", SORTS),
    "bot/engine/sqlite/connector.py": exempt(OLDER_RELEASES, "procrastinate_jobs"),
    "bot/engine/sqlite/lists.py:count_by": exempt(NOT_CALLED, "procrastinate_jobs", SORTS),
    "bot/engine/sqlite/lists.py:list_jobs_to_abort": exempt(FEW_HAVE_IT, "procrastinate_jobs"),
    "bot/engine/sqlite/lists.py:list_jobs": exempt(NOT_CALLED, "procrastinate_jobs"),
    "bot/engine/sqlite/queries.py:delete_old_jobs": exempt(NOT_CALLED, "procrastinate_jobs"),
    "bot/engine/sqlite/queries.py:fetch_job": exempt(ENDS_EARLY, "procrastinate_jobs"),
    "bot/engine/sqlite/queries.py:select_stalled_jobs_by_heartbeat": exempt(FEW_HAVE_IT, "procrastinate_jobs"),
    "bot/engine/sqlite/steps.py:fetch_jobs": exempt(ENDS_EARLY, "procrastinate_jobs"),
    "bot/engine/sqlite/steps.py:next_scheduled": exempt(ENDS_EARLY, "procrastinate_jobs"),
    "bot/engine/sqlite/steps.py:park_jobs": exempt(ENDS_EARLY, "procrastinate_jobs"),
    "bot/engine/tokens.py:TokenStore.all": exempt("an operator lists all tokens", SORTS),
    "bot/engine/upkeep.py:_remove": exempt(RETENTION, "nightjar_records"),
    "bot/engine/upkeep.py:restart_waits": exempt(
        "the clock was set back, and all waits start over", "procrastinate_jobs"
    ),
    "bot/engine/upkeep.py:needed_upkeep": exempt(
        "it reads the first job of deliveries that wait, and few jobs run", "procrastinate_jobs"
    ),
    "bot/engine/upkeep.py:raise_oldest": exempt(ENDS_EARLY, "procrastinate_jobs"),
    "bot/engine/upkeep.py:requeue_all": exempt(FEW_HAVE_IT, "procrastinate_jobs"),
    "bot/engine/upkeep.py:requeue_stalled": exempt(FEW_HAVE_IT, "procrastinate_jobs"),
    "bot/results/store/tables/failure_texts.py:TextReader.text": exempt(ENDS_EARLY, "nightjar_texts"),
    "bot/results/store/tables/failure_texts.py:_next": exempt(ENDS_EARLY, "nightjar_texts"),
    "bot/results/store/lists/lab_reports.py:_commits": exempt(AS_MUCH_AS_IT_SHOWS, SORTS),
    "bot/results/store/write/pending_checks.py:_checks": exempt(STILL_TO_BE_WRITTEN, "nightjar_checks", SORTS),
    "bot/results/store/lists/run_lists.py:waiting_runs": exempt("few runs wait for their files", "nightjar_runs"),
    "bot/results/store/failures/failures.py:newest_messages": exempt(
        "of each series as many as it returns", "nightjar_reports", SORTS
    ),
    "bot/results/store/lists/search.py:commits_with_title.<locals>.<listcomp>": exempt(
        "titles that contain a text are found only by reading them, until enough match", "nightjar_commits"
    ),
    "bot/results/store/measurements/lists.py:listed_metrics": exempt(
        AS_MUCH_AS_IT_SHOWS, "nightjar_measurements", SORTS
    ),
    "bot/results/store/measurements/lists.py:operator_order": exempt(
        "an order is kept until the suite measures something new, and has all that it measures", "nightjar_measurements"
    ),
    "bot/results/store/measurements/moved.py:_read": exempt(
        "it ends at its LIMIT, or sorts the changes of one test",
        "nightjar_level_changes_newest",
        "nightjar_level_changes_since",
        SORTS,
    ),
    "bot/results/store/measurements/names.py:_of_suite": exempt(ENDS_EARLY, "nightjar_measurements"),
    "bot/results/store/measurements/write.py:count_of": exempt(LAST_OF_INDEX, "nightjar_measurements"),
    "bot/results/store/measurements/write.py:placed_measurements": exempt(
        "a run is laid out by all that its suite measures", "nightjar_measurements"
    ),
    "handlers/device_tests/store.py:JobStore._pick": exempt(LAST_OF_INDEX, "nightjar_device_jobs_repository"),
    "handlers/device_tests/measured.py:measure_jobs": exempt(COUNTS, "nightjar_device_jobs", SORTS),
    "handlers/device_tests/store.py:JobStore.unfinished": exempt(
        "it asks whether there is one", "nightjar_device_jobs_ended", "nightjar_device_jobs_unshown"
    ),
    "handlers/device_tests/store.py:JobStore.unshown": exempt(STILL_TO_BE_WRITTEN, "nightjar_device_jobs"),
    "handlers/device_tests/store.py:JobStore.remove_old": exempt(RETENTION, "nightjar_device_jobs"),
}
"""Exemptions by the function that runs the statements."""

SHORT_TABLES = {
    "procrastinate_workers": "one row for each process",
    "procrastinate_periodic_defers": "one row for each timer",
    "nightjar_tokens": "one row for each token that a person made",
    "nightjar_schema": "one row",
    "nightjar_results_version": "one row",
    "nightjar_revisions": "one row for each repository",
}
"""Tables that stay small. All others are filled."""


BEFORE_END = """
INSERT INTO procrastinate_workers (id) OVERRIDING SYSTEM VALUE VALUES (1000000);
INSERT INTO procrastinate_jobs (id, queue_name, task_name, priority, lock, queueing_lock, args, status, worker_id)
VALUES (1000000, 'default', 'deliver', 0, 'lock', 'once:ends', '{}', 'doing', 1000000),
       (1000001, 'default', 'conclude', 90, 'lock', 'once:next', '{"guid": "old-1", "handler": "h"}', 'todo', NULL);
"""
"""A job that runs, and a conclusion that waits behind it."""


@pytest.fixture(scope="module")
def on_sqlite(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlitePlans]:
    path = tmp_path_factory.mktemp("filled") / "nightjar.db"
    with_tables(f"sqlite:///{path}")
    fill_sqlite(path)
    with closing(SqlitePlans(path)) as plans:
        yield plans


@pytest.fixture(scope="module")
def on_postgres(postgres_server: PostgresServer) -> Iterator[PostgresPlans]:
    url = postgres_server.create_database()
    make_tables(url)
    fill_postgres(url)
    with closing(PostgresPlans(url)) as plans:
        yield plans
    postgres_server.drop_database(url)


def scans(on_sqlite: SqlitePlans, on_postgres: PostgresPlans, statements: list[Statement]) -> dict[str, set[str]]:
    """Return what statements read or sort, by the function that runs them.

    SQLite does not say how many rows a step sorts; PostgreSQL does, for the same function's statements.
    """
    steps_by_asker, most = defaultdict[str, set[str]](set), dict[str, float]()
    for statement in statements:
        if statement.database == POSTGRES:
            steps_by_asker[statement.asker] |= {f"{POSTGRES}: {step}" for step in on_postgres.steps(statement)}
            most[statement.asker] = max(on_postgres.most, most.get(statement.asker, 0))
    for statement in statements:
        if statement.database == SQLITE:
            few = most.get(statement.asker, MANY + 1) <= MANY
            steps = (step for step in on_sqlite.steps(statement) if not (few and step.startswith("sorts")))
            steps_by_asker[statement.asker] |= {f"{SQLITE}: {step}" for step in steps}
    return {asker: steps for asker, steps in steps_by_asker.items() if steps}


def test_no_statement_reads_a_whole_table_or_sorts_one(on_sqlite: SqlitePlans, on_postgres: PostgresPlans) -> None:
    statements = collected.statements()
    assert statements
    wrong = [
        f"{asker}: {step}"
        for asker, steps in sorted(scans(on_sqlite, on_postgres, statements).items())
        for step in sorted(steps)
        if not (asker in EXCEPTIONS and EXCEPTIONS[asker].holds(step))
    ]
    assert wrong == [], "\n".join(wrong)
    assert EXCEPTIONS.keys() - {statement.asker for statement in statements} == set(), (
        "these functions no longer need an exemption"
    )


def test_the_end_of_a_job_reads_no_whole_table(on_postgres: PostgresPlans) -> None:
    """All that it can do at once: it stores the plan of a delivery, and begins a conclusion."""
    row = {"key": "record:1", "value": "{}", "version": 1, "at": 0.0, "expires_at": None}
    changes = [row, {**row, "is_guarded": True, "was": "{}"}, {**row, "key": "record:2", "is_guarded": True}]
    job = {"queue": "default", "task": "effect", "priority": 50, "lock": "lock", "key": "once:new", "args": {}}
    values = {
        "id": 1_000_000,
        "worker_id": 1_000_000,
        "status": "succeeded",
        "outcome": "planned",
        "note": "{}",
        "plan_key": "once:plan",
        "plan_args": {"guid": "old-2"},
        "jobs": Json([job]),
        "changes": Json([*changes, {"key": "record:1"}]),
        "begins_next": True,
        "least_priority": 0,
        "reads": ["record:2", "head:1:1"],
    }
    statement = Statement(POSTGRES, FINISH_NOTED, values, "")
    assert list(on_postgres.steps(statement, before=BEFORE_END)) == []
    assert on_postgres.explained >= 12


def test_every_statement_of_the_bot_is_explained() -> None:
    assert ALL_FEATURES  # which imports all modules
    explained = "\n".join(_in_one_line(statement.text) for statement in collected.statements())
    missing = {
        constant: name
        for module_name, module in sorted(sys.modules.items())
        if module_name.startswith(("bot.", "handlers."))
        for name, constant in vars(module).items()
        if isinstance(constant, str) and IS_STATEMENT.match(constant) and not _is_in(constant, explained)
    }
    assert set(missing.values()) == set(), missing


def _is_in(constant: str, explained: str) -> bool:
    """Return whether a statement is, or is part of, one of those explained; its beginning, if it is put together."""
    forms = [constant.partition("{")[0]]
    with suppress(ValueError):  # it is written for SQLite alone
        forms.append(translate(forms[0]))
    return any(_in_one_line(form) in explained for form in forms)


def _in_one_line(text: str) -> str:
    return " ".join(text.split())


def test_a_scan_and_a_sort_are_detected(on_sqlite: SqlitePlans, on_postgres: PostgresPlans) -> None:
    for text in (
        "SELECT count(*) FROM procrastinate_jobs WHERE attempts > 1",
        "SELECT id FROM nightjar_points ORDER BY sha",
        "SELECT id FROM procrastinate_jobs AS job WHERE job.id > 5",
        "SELECT id FROM nightjar_runs AS run WHERE run.state = 'stored'",
    ):
        statements = [Statement(database, text, {}, "a test") for database in (SQLITE, POSTGRES)]
        (steps,) = scans(on_sqlite, on_postgres, statements).values()
        assert {step.partition(":")[0] for step in steps} == {SQLITE, POSTGRES}, text


def test_a_single_row_is_found_by_its_index(on_sqlite: SqlitePlans, on_postgres: PostgresPlans) -> None:
    text = "SELECT status FROM procrastinate_jobs AS job WHERE job.id = 5 ORDER BY job.priority"
    statements = [Statement(database, text, {}, "a test") for database in (SQLITE, POSTGRES)]
    assert scans(on_sqlite, on_postgres, statements) == {}


def test_every_table_is_filled_or_short(on_sqlite: SqlitePlans, on_postgres: PostgresPlans) -> None:
    for plans in (on_sqlite, on_postgres):
        assert {table for table in plans.tables if plans.rows.get(table, 0) < 1} <= set(SHORT_TABLES)
