"""Jobs that wait behind another of their lock are put aside, so a fetch costs the same however many there are."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from typing import Any, LiteralString, cast

import psycopg
import pytest
from procrastinate.jobs import Job, Status

from bot.engine.database import Database
from bot.engine.jobs.once import NewJob, defer_once
from bot.engine.jobs.steps import FETCH, PARK, WINDOW
from bot.engine.sql import portable
from bot.engine.sql.transactions import Connector
from bot.engine.sqlite.connector import SqliteConnector
from bot.engine.sqlite.steps import fetch_jobs
from bot.engine.upkeep import requeue_all
from bot.engine.worker.manager import EngineJobManager
from tests.engine.test_fetch import fetched, manager_of
from tests.waiting import until

PARKED: LiteralString = "SELECT count(*) AS count FROM procrastinate_jobs WHERE status = 'todo' AND nightjar_parked"
SLOTS = 5
FEW, MANY = 1 + 10 * WINDOW * (SLOTS - 1), 1 + 100 * WINDOW * (SLOTS - 1)
"""One runs, and the others fill the window of a fetch several times, so that all of them are parked."""


async def stored(connector: Connector, count: int, **fields: Any) -> None:
    await defer_once(connector, [NewJob(f"a{number}", "t", {}, lock="a", **fields) for number in range(count)])


async def parked_count(connector: Connector) -> int:
    (row,) = await connector.execute_query_all_async(PARKED)
    return cast("int", row["count"])


async def parked_behind(database: Database, count: int) -> tuple[EngineJobManager, int, Job]:
    """Store jobs of one lock, run the first one, and fetch until all others are parked."""
    manager = manager_of(database.connector, SLOTS)
    worker = await manager.register_worker()
    await stored(database.connector, count)
    running = cast("Job", await manager.fetch_job(None, worker))
    assert await manager.fetch_job(None, worker) is None
    return manager, worker, running


async def test_jobs_that_fill_the_window_are_parked_and_run_in_their_order(database: Database) -> None:
    count = 3 * WINDOW * SLOTS
    manager, worker, running = await parked_behind(database, count)
    assert await parked_count(database.connector) > count - WINDOW * SLOTS
    for number in range(1, count):
        await manager.finish_job(running, Status.SUCCEEDED, delete_job=False)
        running = cast("Job", await manager.fetch_job(None, worker))
        assert running.queueing_lock == f"once:a{number}"
    assert await parked_count(database.connector) == 0


REMOVE: LiteralString = "DELETE FROM procrastinate_jobs WHERE queueing_lock = 'once:a0'"
CANCEL: LiteralString = "UPDATE procrastinate_jobs SET status = 'cancelled' WHERE queueing_lock = 'once:a0'"


async def _removed(database: Database) -> None:
    await database.connector.execute_query_async(REMOVE)


async def _cancelled(database: Database) -> None:
    await requeue_all(database.connector)
    await database.connector.execute_query_async(CANCEL)


@pytest.mark.parametrize("end", [_removed, _cancelled])
async def test_a_parked_job_runs_when_the_one_before_it_is_removed(database: Database, end: Callable[..., Any]) -> None:
    manager, _, _ = await parked_behind(database, 60)
    await end(database)
    worker = await manager.register_worker()
    assert await fetched(manager, worker, 2) == ["a1", "nothing"]


async def test_a_parked_job_that_is_raised_runs_first(database: Database) -> None:
    manager, _, _ = await parked_behind(database, 60)
    await requeue_all(database.connector)
    worker = await manager.register_worker()
    await database.connector.execute_query_async(
        "UPDATE procrastinate_jobs SET priority = 1 WHERE queueing_lock = 'once:a30'"
    )
    assert await fetched(manager, worker, 2) == ["a30", "nothing"]


async def test_a_parked_job_that_was_cancelled_and_returns_runs(database: Database) -> None:
    manager, worker, running = await parked_behind(database, 60)
    change: LiteralString = "UPDATE procrastinate_jobs SET status = %(status)s WHERE queueing_lock = ANY(%(keys)s)"
    if not database.embedded:
        change = change.replace("%(status)s", "%(status)s::procrastinate_job_status")
    keys = [f"once:a{number}" for number in range(1, 60)]
    await database.connector.execute_query_async(change, status="cancelled", keys=keys)
    await manager.finish_job(running, Status.SUCCEEDED, delete_job=False)
    await database.connector.execute_query_async(change, status="todo", keys=keys[-2:])
    assert await fetched(manager, worker, 2) == ["a58", "nothing"]


async def test_a_job_is_not_parked_while_the_one_before_it_is_being_ended(postgres_url: str) -> None:
    database = Database(postgres_url)
    await database.open()
    await stored(database.connector, 2)
    async with await psycopg.AsyncConnection.connect(postgres_url) as other:
        await other.execute("UPDATE procrastinate_jobs SET status = 'doing' WHERE queueing_lock = 'once:a0'")
        await other.commit()
        await other.execute("UPDATE procrastinate_jobs SET status = 'succeeded' WHERE queueing_lock = 'once:a0'")
        assert await database.connector.execute_query_all_async(PARK, window=9) == []
        await other.commit()
    manager = manager_of(database.connector, SLOTS)
    assert await fetched(manager, await manager.register_worker(), 2) == ["a1", "nothing"]
    await database.close()


async def test_the_end_of_a_job_frees_what_is_being_parked_behind_it(postgres_url: str) -> None:
    database = Database(postgres_url)
    await database.open()
    manager = manager_of(database.connector, SLOTS)
    worker = await manager.register_worker()
    await stored(database.connector, 2)
    running = cast("Job", await manager.fetch_job(None, worker))
    async with (
        await psycopg.AsyncConnection.connect(postgres_url) as other,
        await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as observer,
    ):
        assert await (await other.execute(PARK, {"window": 9})).fetchall()
        ending = asyncio.create_task(manager.finish_job(running, Status.SUCCEEDED, delete_job=False))
        waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"

        async def waiting() -> bool:
            return bool(await (await observer.execute(waits)).fetchall())

        await until(waiting)
        await other.commit()
        await ending
    assert await fetched(manager, worker, 2) == ["a1", "nothing"]
    await database.close()


async def test_a_fetch_reads_as_much_with_many_locked_jobs_as_with_few(database: Database) -> None:
    cost = _steps_of_sqlite if database.embedded else _rows_of_postgres
    manager, worker, running = await parked_behind(database, FEW)
    few = await cost(database, worker)
    await defer_once(database.connector, [NewJob(f"a{number}", "t", {}, lock="a") for number in range(FEW, MANY)])
    assert await manager.fetch_job(None, worker) is None
    many = await cost(database, worker)
    assert many <= few + SLOTS
    # The next job of the lock is free now.
    await manager.finish_job(running, Status.SUCCEEDED, delete_job=False)
    free = await cost(database, worker)
    for _ in range(10):
        running = cast("Job", await manager.fetch_job(None, worker))
        await manager.finish_job(running, Status.SUCCEEDED, delete_job=False)
    assert await cost(database, worker) <= free + SLOTS


async def _steps_of_sqlite(database: Database, worker: int) -> float:
    """Return how many instructions SQLite runs for a fetch, which is undone."""
    connector = cast("SqliteConnector", database.connector)
    connection = sqlite3.connect(connector.path, isolation_level=None)
    connection.row_factory = portable.row
    portable.add_functions(connection)
    steps = 0

    def count() -> int:
        nonlocal steps
        steps += 1
        return 0

    connection.execute("BEGIN IMMEDIATE")
    connection.set_progress_handler(count, 1)
    fetch_jobs(connection, worker_id=worker, most=SLOTS, window=WINDOW * SLOTS)
    connection.set_progress_handler(None, 0)
    connection.execute("ROLLBACK")
    connection.close()
    return steps


async def _rows_of_postgres(database: Database, worker: int) -> float:
    """Return how many rows PostgreSQL reads for a fetch, which is undone."""
    conninfo = vars(database.connector)["conninfo"]
    values = {"worker_id": worker, "most": SLOTS, "window": WINDOW * SLOTS}
    async with await psycopg.AsyncConnection.connect(conninfo) as connection:
        await connection.execute("ANALYZE procrastinate_jobs")
        (plan,) = await (await connection.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + FETCH, values)).fetchone() or [""]
        await connection.rollback()
    return _rows_of((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"])


def _rows_of(plan: dict[str, Any]) -> float:
    removed = plan.get("Rows Removed by Filter", 0)
    own = (plan["Actual Rows"] + removed) * plan["Actual Loops"]
    return float(own) + sum(_rows_of(step) for step in plan.get("Plans", ()))
