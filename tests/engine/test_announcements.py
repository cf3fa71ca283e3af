"""On PostgreSQL, workers are woken after the commit: no transaction that writes waits for the lock of NOTIFY."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from typing import cast

import psycopg
import pytest
from procrastinate.jobs import Status

from bot.engine.database import Database
from bot.engine.jobs.once import NewJob, defer_once
from bot.engine.postgres.announcer import JobAnnouncer
from bot.engine.worker.guard import Guard
from bot.engine.worker.manager import EngineJobManager
from tests.engine.running import running
from tests.engine.test_postgres import Listener
from tests.engine.toy import World
from tests.postgres import PostgresServer, running_server
from tests.waiting import DEADLINE, until

WAITS_FOR_STANDBY = "SELECT 1 FROM pg_stat_activity WHERE pid = %s AND wait_event = 'SyncRep'"
END_LISTENERS = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
 WHERE datname = current_database() AND (query LIKE 'LISTEN%' OR query = 'SELECT 1') AND pid <> pg_backend_pid()
"""
WAITING = """
SELECT query FROM pg_stat_activity
 WHERE wait_event_type = 'Lock' AND datname = current_database() AND query NOT LIKE '%%pg_notify%%'
"""


def jobs(count: int) -> list[NewJob]:
    return [NewJob(f"k{number}", "t", {}) for number in range(count)]


@pytest.fixture
async def replicas(postgres_url: str) -> AsyncIterator[tuple[Database, Database]]:
    """Return two connections of processes with one database."""
    both = Database(postgres_url), Database(postgres_url)
    for database in both:
        await database.open()
    yield both
    for database in both:
        await database.close()


def only_at_the_end(database: Database) -> JobAnnouncer:
    """Let a process notify others when it ends, and not sooner, however long its worker takes; return its announcer."""
    announcer = cast("JobAnnouncer", vars(database.connector)["_others"])
    announcer.pause = DEADLINE
    return announcer


async def heard_of_all(url: str, listener: Listener) -> None:
    """Notify a listener. Notifications arrive in order, so once it hears this one, it has heard all earlier ones."""
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        if not listener.heard:
            await listener.ready(connection)
        listener.last = ""
        await connection.execute("SELECT pg_notify('procrastinate_any_queue_v1', 'last')")
        await until(lambda: listener.last == "last")


async def test_a_sleeping_worker_of_another_process_is_woken_by_the_first_job(
    replicas: tuple[Database, Database], postgres_url: str
) -> None:
    ours, other = replicas
    listener = Listener(other)
    await heard_of_all(postgres_url, listener)
    heard_before = listener.heard
    await defer_once(ours.connector, jobs(1))
    await until(lambda: listener.heard == heard_before + 1)
    await listener.stop()


async def test_many_jobs_of_one_statement_are_announced_once(
    replicas: tuple[Database, Database], postgres_url: str
) -> None:
    ours, other = replicas
    listener = Listener(other)
    await heard_of_all(postgres_url, listener)
    heard_before = listener.heard
    await defer_once(ours.connector, jobs(200))
    await ours.close()  # which sends what is left
    await heard_of_all(postgres_url, listener)
    assert listener.heard == heard_before + 2, "one for the jobs, and the last"
    await listener.stop()


async def test_a_worker_fetches_whenever_its_connection_begins_to_listen(
    replicas: tuple[Database, Database], postgres_url: str
) -> None:
    """Notifications of others before that moment are lost."""
    ours, _ = replicas
    listener = Listener(ours)
    await until(lambda: listener.heard == 1)
    async with await psycopg.AsyncConnection.connect(postgres_url, autocommit=True) as connection:
        await connection.execute(END_LISTENERS)
    await until(lambda: listener.heard == 2)
    await listener.stop()


@pytest.mark.parametrize(("count", "notifications"), [(1, 0), (2, 1)])
async def test_others_are_notified_if_the_worker_of_the_process_leaves_jobs(
    replicas: tuple[Database, Database], postgres_url: str, count: int, notifications: int
) -> None:
    ours, other = replicas
    listener = Listener(other)
    await heard_of_all(postgres_url, listener)
    heard_before = listener.heard
    only_at_the_end(ours)
    manager = EngineJobManager(ours.connector, Guard(), lambda: None, concurrency=1)
    worker = await manager.register_worker()
    await defer_once(ours.connector, jobs(count))
    assert await manager.fetch_job(None, worker)
    assert await manager.fetch_job(None, worker) is None or count > 1
    await ours.close()  # which sends what is left
    await heard_of_all(postgres_url, listener)
    assert listener.heard == heard_before + notifications + 1
    await listener.stop()


async def test_a_process_does_not_hear_its_own_notifications(postgres_url: str) -> None:
    database = Database(postgres_url)
    await database.open()
    listener = Listener(database)
    await heard_of_all(postgres_url, listener)
    heard_before = listener.heard
    await defer_once(database.connector, jobs(1))
    await until(lambda: listener.heard == heard_before + 1)  # its own wake-up, without the server
    await cast("JobAnnouncer", vars(database.connector)["_others"]).finish()
    await heard_of_all(postgres_url, listener)
    assert listener.heard == heard_before + 2
    await listener.stop()
    await database.close()


async def test_what_is_announced_while_a_notification_is_sent_needs_one_more() -> None:
    sent, may_end = list[int](), asyncio.Event()

    async def notify() -> None:
        sent.append(len(sent))
        await may_end.wait()

    announcer = JobAnnouncer(notify, pause=0.0)
    for _ in range(3):
        announcer.announce()
    await until(lambda: sent == [0])
    for _ in range(3):
        announcer.announce()
    may_end.set()
    await until(lambda: sent == [0, 1])
    await announcer.finish()
    assert sent == [0, 1]


async def test_an_announcement_that_waits_is_sent_before_the_end() -> None:
    sent = list[int]()

    async def notify() -> None:
        sent.append(len(sent))

    announcer = JobAnnouncer(notify, pause=3600.0)
    announcer.announce()
    await announcer.finish()
    assert sent == [0]
    announcer.announce()
    announcer.withdraw()
    await announcer.finish()
    assert sent == [0]


async def test_a_job_of_a_process_that_died_before_its_announcement_is_polled(postgres_url: str, world: World) -> None:
    async with running(postgres_url, world) as engine:
        async with await psycopg.AsyncConnection.connect(postgres_url) as dying:
            # As a process stores it, but nobody listens to the server's message on this connection.
            await dying.execute(
                "INSERT INTO procrastinate_jobs (queue_name, task_name, args) VALUES ('default', 'unknown', '{}')"
            )
            await dying.commit()

        async def has_ended() -> bool:
            rows = await engine.database.connector.execute_query_all_async(
                "SELECT 1 FROM procrastinate_jobs WHERE task_name = 'unknown' AND status = 'failed'"
            )
            return bool(rows)

        await until(has_ended)


@pytest.fixture(scope="module")
def standby_server() -> Iterator[PostgresServer]:
    """Return a server whose commits wait for a standby, which it does not have, unless they are local."""
    with running_server({"synchronous_standby_names": "nobody", "synchronous_commit": "local"}) as server:
        yield server


async def test_no_write_waits_for_the_notification_of_another(standby_server: PostgresServer) -> None:
    """A commit holds the lock of NOTIFY until it is on the disk; here, one holds it for ever."""
    url = standby_server.create_database()
    database = Database(url)
    await database.open()
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as observer:
        holder = await psycopg.AsyncConnection.connect(url)
        await holder.execute("SET synchronous_commit = on")
        await holder.execute("CREATE TABLE written (number integer)")
        await holder.execute("SELECT pg_notify('procrastinate_any_queue_v1', '{}')")
        committing = asyncio.create_task(holder.commit())

        async def holds() -> bool:
            return bool(await (await observer.execute(WAITS_FOR_STANDBY, (holder.info.backend_pid,))).fetchall())

        await until(holds)
        working = asyncio.create_task(work(database))
        await asyncio.wait({working}, timeout=DEADLINE)
        waiting = await (await observer.execute(WAITING.replace("%%", "%"))).fetchall()
        assert waiting == []
        assert await working == 3
        await observer.execute("SELECT pg_terminate_backend(%s)", (holder.info.backend_pid,))
        await asyncio.gather(committing, return_exceptions=True)
        await holder.close()
    await database.close()


async def work(database: Database) -> int:
    """Store jobs of one lock, and run them; return how many ran."""
    manager, ended = EngineJobManager(database.connector, Guard(), lambda: None), 0
    worker = await manager.register_worker()
    await defer_once(database.connector, [NewJob(f"k{number}", "t", {}, lock="l") for number in range(3)])
    while job := await manager.fetch_job(None, worker):
        await manager.finish_job(job, Status.SUCCEEDED, delete_job=False)
        ended += 1
    return ended
