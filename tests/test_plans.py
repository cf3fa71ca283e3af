"""No statement of the bot reads a whole large table, or sorts many rows, on either database.

`make tests` runs all others first, which leave what they ran in the folder that NIGHTJAR_STATEMENTS names: a statement
that is added is covered by whatever test runs it.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.filled import fill_postgres, fill_sqlite
from tests.plans import MANY, PostgresPlans, SqlitePlans
from tests.postgres import PostgresServer
from tests.statements import FOLDER, POSTGRES, SQLITE, Statement, collected
from tests.tables import make_tables, with_tables

pytestmark = [pytest.mark.alone, pytest.mark.skipif(FOLDER not in os.environ, reason="make plans")]

ENDS_EARLY = "it reads in the order of an index, and ends at its LIMIT"
RETENTION = "it removes what is old, once an hour, and begins with the oldest"
COUNTS = "it counts what waits or runs for metrics and people, in a part of the table that an index holds"
NOT_CALLED = "Procrastinate offers it, and nothing of ours calls it"
AS_MUCH_AS_IT_SHOWS = "what it reads is what it returns, as the caller asked for it: a range of keys or of time"
ALL_OF_A_SUITE = "a search for renames and causes reads all of one suite, in a process of its own"
FEW = "it sorts the rows of one page, one commit or one target"
CHEAPER = "PostgreSQL finds reading all cheaper than that many single rows; its index is there, and SQLite uses it"

EXCEPTIONS: dict[str, str] = {
    "bot/engine/journal.py:Journal._newest": ENDS_EARLY,
    "bot/engine/journal.py:Journal.recent": ENDS_EARLY,
    "bot/engine/journal.py:Journal.matching": ENDS_EARLY,
    "bot/engine/journal.py:Journal._records": CHEAPER,
    "bot/engine/manager.py:EngineJobManager.fetch_job": ENDS_EARLY,
    "bot/engine/sqlite_queries.py:fetch_job": ENDS_EARLY,
    "bot/engine/outage.py:release_waiting": COUNTS,
    "bot/engine/service.py:Engine.backlog": COUNTS,
    "bot/engine/sqlite.py": "deliveries of older releases are moved once, at the first start",
    "bot/engine/sqlite_steps.py:fetch_jobs": ENDS_EARLY,
    "bot/engine/sqlite_lists.py:count_by": NOT_CALLED,
    "bot/engine/sqlite_lists.py:list_jobs": NOT_CALLED,
    "bot/engine/records.py:Records.under": AS_MUCH_AS_IT_SHOWS,
    "bot/engine/tokens.py:TokenStore.all": "an operator lists all tokens",
    "bot/engine/upkeep.py:_remove": RETENTION,
    "bot/engine/upkeep.py:count_anew": "it looks at what is scheduled, when the clock was set back",
    "bot/results/store/failure_texts.py:TextReader.text": ENDS_EARLY,
    "bot/results/store/failure_texts.py:_next": ENDS_EARLY,
    "bot/results/store/history.py:_flips": CHEAPER,
    "bot/results/store/lab_reports.py:_commits": AS_MUCH_AS_IT_SHOWS,
    "bot/results/store/lab_reports.py:_latencies": AS_MUCH_AS_IT_SHOWS,
    "bot/results/store/run_lists.py:page": ENDS_EARLY,
    "bot/results/store/snapshot.py:_checks": ALL_OF_A_SUITE,
    "bot/results/store/snapshot.py:_runs": ALL_OF_A_SUITE,
    "bot/results/store/snapshot.py:_series": ALL_OF_A_SUITE,
    "handlers/hardware/jobs/measured.py:measure_jobs": COUNTS,
    "handlers/hardware/jobs/store.py:JobStore.remove_old": RETENTION,
}
"""Whose statements may read or sort much, and why."""

SHORT_TABLES = {
    "procrastinate_workers": "one row for each process",
    "procrastinate_periodic_defers": "one row for each timer",
    "nightjar_tokens": "one row for each token that a person made",
    "nightjar_schema": "one row",
    "nightjar_results_version": "one row",
    "nightjar_revisions": "one row for each repository",
}
"""Tables that hold little, however much has happened. All others are filled."""


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
    """Return what statements read or sort, by who asks for them.

    SQLite does not say how many rows a step sorts; PostgreSQL does, of the same function's statements.
    """
    found, most = defaultdict[str, set[str]](set), dict[str, float]()
    for one in statements:
        if one.database == POSTGRES:
            found[one.asker] |= {f"{POSTGRES}: {step}" for step in on_postgres.steps(one)}
            most[one.asker] = max(on_postgres.most, most.get(one.asker, 0))
    for one in statements:
        if one.database == SQLITE:
            few = most.get(one.asker, MANY + 1) <= MANY
            steps = (step for step in on_sqlite.steps(one) if not (few and step.startswith("sorts")))
            found[one.asker] |= {f"{SQLITE}: {step}" for step in steps}
    return {asker: steps for asker, steps in found.items() if steps}


def test_no_statement_reads_a_whole_table_or_sorts_one(on_sqlite: SqlitePlans, on_postgres: PostgresPlans) -> None:
    statements = collected.statements()
    assert statements
    found = scans(on_sqlite, on_postgres, statements)
    assert {asker: steps for asker, steps in found.items() if asker not in EXCEPTIONS} == {}


def test_a_scan_and_a_sort_are_seen(on_sqlite: SqlitePlans, on_postgres: PostgresPlans) -> None:
    for text in (
        "SELECT count(*) FROM procrastinate_jobs WHERE attempts > 1",
        "SELECT id FROM nightjar_points ORDER BY sha",
        "SELECT id FROM procrastinate_jobs AS job WHERE job.id > 5",
    ):
        both = [Statement(database, text, {}, "a test") for database in (SQLITE, POSTGRES)]
        (steps,) = scans(on_sqlite, on_postgres, both).values()
        assert {step.partition(":")[0] for step in steps} == {SQLITE, POSTGRES}, text


def test_a_single_row_is_found_by_its_index(on_sqlite: SqlitePlans, on_postgres: PostgresPlans) -> None:
    text = "SELECT status FROM procrastinate_jobs AS job WHERE job.id = 5 ORDER BY job.priority"
    both = [Statement(database, text, {}, "a test") for database in (SQLITE, POSTGRES)]
    assert scans(on_sqlite, on_postgres, both) == {}


def test_every_table_is_filled_or_short(on_sqlite: SqlitePlans, on_postgres: PostgresPlans) -> None:
    for plans in (on_sqlite, on_postgres):
        assert {table for table in plans.tables if plans.rows.get(table, 0) < 1} <= set(SHORT_TABLES)
