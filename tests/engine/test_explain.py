"""No statement that a delivery causes reads the whole table of jobs, whatever its size.

Statements are collected where the database runs them, so those that are added later are covered.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from bot.engine.budget import WriteBudget, WritePace
from bot.engine.jobs.journal import DERIVED
from bot.engine.jobs.steps import PARK
from bot.engine.outage import release_waiting
from bot.engine.records import Records
from bot.engine.service import Engine
from bot.engine.sql.transactions import Connector
from bot.engine.upkeep import LONG_WAIT, raise_oldest, remove_old_records
from tests.engine.filled import (
    EXPLAINING,
    Traced,
    fill_postgres,
    fill_sqlite,
    postgres_scans,
)
from tests.engine.running import LOCK, running, settled
from tests.engine.test_records import NOTE, Note
from tests.engine.toy import World, body, writes
from tests.postgres import PostgresServer, running_server

SHORT_INDICES = {
    "procrastinate_jobs_priority_idx_v1": "jobs that wait, in their order: a fetch ends at the first that may run",
    "nightjar_ready": "jobs that wait and may run, in their order: a fetch ends at the first that may run",
    "procrastinate_jobs_lock_idx_v1": "jobs that run: fifty for each process",
    "procrastinate_jobs_doing": "jobs that run: fifty for each process",
}
"""Indices of a part of the table, which may be read from their beginning; why that is short."""

SHORT_TABLES = (
    "procrastinate_workers",
    "procrastinate_periodic_defers",
    "nightjar_schema",
    "sqlite_schema",
    "sqlite_sequence",
)
"""What has a few rows, however much has happened."""

READ_BY_PEOPLE = DERIVED.partition(" WHERE ")[0]
"""What `nightjar deliveries` reads. It finds the jobs by an index; PostgreSQL may then join them with all notes."""

NO_TABLES = ("json_each", "CONSTANT ROW", "ROW VALUES CLAUSE", "(subquery", "CTE")


async def everything_that_a_delivery_causes(engine: Engine) -> None:
    """Accept, route, plan, apply, fail, retry, release, close, and replay; then again for a known GUID."""
    handlers = {
        "slow-tests": writes("comment", "status", conclude={}),
        "rerun": {"effects": [{"target": "run", "errors": ["again:0.01"]}], "conclude": {}},
        "merge": {"errors": ["user"], "answer": {"target": "answer"}},
    }
    text = body(handlers, pull_request={"number": 7, "head": {"sha": "0" * 40}})
    assert await engine.accept("guid-1", "issue_comment", text, LOCK)
    await settled(engine, "guid-1")
    assert not await engine.accept("guid-1", "issue_comment", text, LOCK)
    assert await engine.accept("guid-2", "push", body({}), LOCK, urgent=True)
    await settled(engine, "guid-2")
    await what_handlers_and_requests_cause(engine.database.connector)
    await engine.replay("guid-1")
    await engine.replay("guid-2")
    assert await engine.journal.known_guids(["guid-1", "guid-3"]) == {"guid-1"}
    assert len(await engine.journal.deliveries(["guid-1", "guid-2"])) == 2
    assert [record.guid for record in await engine.journal.of_lock(LOCK)] == ["guid-2", "guid-1"]
    await engine.journal.failures(50)
    assert await engine.workers()


async def what_handlers_and_requests_cause(connector: Connector) -> None:
    """Run what handlers, requests to GitHub and the observers of jobs run, because a toy processor does not."""
    await release_waiting(connector)
    await raise_oldest(connector, time.time() + 10 * LONG_WAIT)
    await connector.execute_query_all_async(PARK, window=200)
    records = Records(connector)
    await records.put(NOTE.of(1, 7), Note("0" * 40))
    assert await records.change(NOTE.of(1, 7), lambda _: Note("1" * 40))
    assert await records.under(NOTE, 1) == {"7": Note("1" * 40)}
    await records.remove(NOTE.of(1, 7))
    assert await remove_old_records(connector) == 0
    await WriteBudget(connector).book("42", WritePace(80, 500, 5, 1.0), 5.0)


async def test_no_statement_scans_the_table_of_jobs_on_sqlite(
    tmp_path: Path, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "nightjar.db"
    async with Engine(f"sqlite:///{path}"):
        fill_sqlite(path)
    traced = Traced(path, monkeypatch)
    async with running(f"sqlite:///{path}", world) as engine:
        await everything_that_a_delivery_causes(engine)
    assert len(traced.statements) > 100
    assert [scan for scan in traced.scans() if not _is_short(scan[0])] == []


def _is_short(step: str) -> bool:
    """Return whether a step of SQLite's plan reads little: https://sqlite.org/eqp.html."""
    if any(name in step for name in (*SHORT_TABLES, *NO_TABLES)):
        return True
    return step.rpartition(" INDEX ")[2] in SHORT_INDICES


async def test_a_scan_on_sqlite_is_detected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    url = f"sqlite:///{tmp_path / 'nightjar.db'}"
    async with Engine(url):
        traced = Traced(tmp_path / "nightjar.db", monkeypatch)
    async with Engine(url) as engine:
        await engine.database.connector.execute_query_async(
            "SELECT count(*) FROM procrastinate_jobs WHERE attempts > 1"
        )
    assert [step for step, _ in traced.scans() if not _is_short(step)] == ["SCAN procrastinate_jobs"]


@pytest.fixture(scope="module")
def explaining_server() -> Iterator[PostgresServer]:
    with running_server(EXPLAINING) as server:
        yield server


async def test_no_statement_scans_the_table_of_jobs_on_postgresql(
    explaining_server: PostgresServer, world: World
) -> None:
    url = explaining_server.create_database()
    async with Engine(url):
        fill_postgres(url)
    logged_before = len(explaining_server.log())
    async with running(url, world) as engine:
        await everything_that_a_delivery_causes(engine)
    logged = explaining_server.log()[logged_before:]
    assert logged.count("plan:") > 100
    assert [scan for scan in postgres_scans(logged) if not scan[1].startswith(READ_BY_PEOPLE)] == []


def test_a_scan_on_postgresql_is_detected(explaining_server: PostgresServer) -> None:
    url = explaining_server.create_database()
    logged_before = len(explaining_server.log())
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute("CREATE TABLE procrastinate_jobs (id integer)")
        connection.execute("SELECT count(*) FROM procrastinate_jobs")
    assert [table for table, _ in postgres_scans(explaining_server.log()[logged_before:])] == ["procrastinate_jobs"]
