"""What replicas on one PostgreSQL need beyond Procrastinate's own connector."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import psycopg
import pytest
from procrastinate.jobs import Job
from procrastinate.manager import JobManager

from bot.engine.database import Database
from bot.engine.postgres.connector import CONNECTIONS, LONGEST_STATEMENT, PostgresConnector
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.worker.guard import Guard
from bot.engine.worker.manager import EngineJobManager
from tests.postgres import PostgresServer
from tests.waiting import DEADLINE, until

STEPS = 20
"""More than the event loop takes from a connection that is free to the query that it is wanted for."""
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


@pytest.fixture
async def opened(postgres_url: str) -> AsyncIterator[Database]:
    database = Database(postgres_url)
    await database.open()
    yield database
    await database.close()


class Listener:
    """Count the notifications that a worker would get."""

    def __init__(self, database: Database) -> None:
        self.heard, self.last = 0, ""
        self.task = asyncio.create_task(database.connector.listen_notify(self.hear, ["procrastinate_any_queue_v1"]))

    async def hear(self, *, channel: str, payload: str) -> None:
        del channel
        self.heard, self.last = self.heard + 1, payload

    async def ready(self, connection: psycopg.AsyncConnection) -> None:
        async def message() -> bool:
            await connection.execute("SELECT pg_notify('procrastinate_any_queue_v1', '{}')")
            return self.heard > 0

        await until(message)

    async def stop(self) -> None:
        self.task.cancel()
        await asyncio.gather(self.task, return_exceptions=True)


async def someone_waits(connection: psycopg.AsyncConnection) -> bool:
    row = await (await connection.execute(WAITING)).fetchone()
    return bool(row and row[0])


async def test_a_worker_fetches_again_after_a_notification_during_a_fetch_without_result(
    opened: Database, postgres_url: str
) -> None:
    manager = EngineJobManager(opened.connector, Guard(), lambda: None, concurrency=2)
    worker = await manager.register_worker()
    listener = Listener(opened)
    async with (
        await psycopg.AsyncConnection.connect(postgres_url) as holder,
        await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as connection,
    ):
        await listener.ready(connection)
        await holder.execute("LOCK TABLE procrastinate_jobs IN ACCESS EXCLUSIVE MODE")
        fetching = asyncio.create_task(manager.fetch_job(None, worker))
        await until(lambda: someone_waits(connection))
        heard_before = listener.heard
        await connection.execute("SELECT pg_notify('procrastinate_any_queue_v1', 'last')")
        await until(lambda: listener.heard > heard_before)
        heard_during = listener.heard
        await holder.rollback()
        assert await fetching is None
        await until(lambda: listener.heard == heard_during + 1)
        assert await manager.fetch_job(None, worker) is None
    await listener.stop()


async def test_two_replicas_that_request_the_same_lock_at_once_do_not_both_get_it(
    opened: Database, postgres_url: str
) -> None:
    manager = EngineJobManager(opened.connector, Guard(), lambda: None, concurrency=2)
    worker = await manager.register_worker()
    first = await manager.defer_job_async(Job(queue="q", lock="l", queueing_lock=None, task_name="t"))
    listener = Listener(opened)
    async with (
        await psycopg.AsyncConnection.connect(postgres_url) as replica,
        await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as connection,
    ):
        await listener.ready(connection)
        await replica.execute("UPDATE procrastinate_jobs SET status = 'doing' WHERE id = %s", (first.id,))
        await manager.defer_job_async(Job(queue="q", lock="l", queueing_lock=None, task_name="t", priority=10))
        fetching = asyncio.create_task(manager.fetch_job(None, worker))
        await until(lambda: someone_waits(connection))
        await replica.commit()
        assert await fetching is None
    await listener.stop()


async def test_the_connector_works_again_after_a_crash_of_the_server(
    opened: Database, postgres_server: PostgresServer
) -> None:
    manager = JobManager(opened.connector)
    await manager.defer_job_async(Job(queue="q", lock=None, queueing_lock=None, task_name="t"))
    postgres_server.restart_immediately()

    async def answers() -> object:
        try:
            return await opened.connector.execute_query_one_async("SELECT count(*) AS n FROM procrastinate_jobs")
        except DatabaseFailure:
            return None

    assert await until(answers) == {"n": 1}


async def test_a_caller_cancelled_while_it_gets_a_connection_ends(opened: Database) -> None:
    """It is cancelled at each step of the event loop between the release of a connection and its use."""
    connector = opened.connector
    assert isinstance(connector, PostgresConnector)

    async def work_for_ever() -> None:
        while True:
            await connector.execute_query_all_async("SELECT 1 AS one")

    for steps in range(STEPS):
        held = [await connector.pool.getconn() for _ in range(CONNECTIONS)]
        working = asyncio.create_task(work_for_ever())
        await asyncio.sleep(0)
        await connector.pool.putconn(held.pop())
        for _ in range(steps):
            await asyncio.sleep(0)
        working.cancel()
        await asyncio.wait({working}, timeout=DEADLINE)
        assert working.cancelled(), steps
        for connection in held:
            await connector.pool.putconn(connection)


async def test_a_listener_cancelled_while_a_notification_arrives_ends(opened: Database, postgres_url: str) -> None:
    """It is cancelled at each step of the event loop between the notification and the call back."""
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as connection:
        for steps in range(STEPS):
            listener = Listener(opened)
            await listener.ready(connection)
            await connection.execute("SELECT pg_notify('procrastinate_any_queue_v1', 'last')")
            for _ in range(steps):
                await asyncio.sleep(0)
            listener.task.cancel()
            await asyncio.wait({listener.task}, timeout=DEADLINE)
            assert listener.task.cancelled(), steps


@pytest.mark.parametrize(("options", "limit"), [("", LONGEST_STATEMENT), ("?options=-cstatement_timeout%3D7s", "7s")])
async def test_the_server_ends_a_statement_that_takes_too_long(postgres_url: str, options: str, limit: str) -> None:
    database = Database(postgres_url + options)
    await database.open()
    try:
        (row,) = await database.connector.execute_query_all_async("SHOW statement_timeout")
        assert row == {"statement_timeout": limit}
    finally:
        await database.close()


async def test_a_connection_that_the_server_closed_is_replaced_before_a_statement_is_sent(
    opened: Database, postgres_url: str
) -> None:
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as connection:
        for _ in range(3):
            (row,) = await opened.connector.execute_query_all_async("SELECT pg_backend_pid() AS pid")
            await connection.execute("SELECT pg_terminate_backend(%s, 10000)", (row["pid"],))
        assert await opened.connector.execute_query_all_async("SELECT 1 AS one") == [{"one": 1}]
