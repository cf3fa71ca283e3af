"""A worker fetches several jobs at once: in order, one per lock, and none together with a job that may crash."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import cast

import pytest
from procrastinate.jobs import Job, Status

from bot.engine.database import Database
from bot.engine.jobs.notes import APPLIED, Note
from bot.engine.jobs.once import NewJob, defer_once
from bot.engine.jobs.steps import ANY_QUEUE, WINDOW
from bot.engine.sql.transactions import Connector
from bot.engine.sqlite.connector import SqliteConnector
from bot.engine.worker.guard import Guard
from bot.engine.worker.manager import EngineJobManager, leave_note
from tests.tables import with_tables
from tests.waiting import until

STATES = "SELECT queueing_lock, status, attempts, worker_id FROM procrastinate_jobs ORDER BY id"
TRIED = "UPDATE procrastinate_jobs SET attempts = 1 WHERE queueing_lock = ANY(%(keys)s)"
LATER = "UPDATE procrastinate_jobs SET scheduled_at = to_timestamp(4000000000) WHERE queueing_lock = ANY(%(keys)s)"


def manager_of(connector: Connector, concurrency: int) -> EngineJobManager:
    return EngineJobManager(connector, Guard(), lambda: None, concurrency=concurrency)


async def stored(connector: Connector, *keys: str) -> None:
    """Store jobs: the lock is the first letter of the key, none for `-`; a digit at the end is a priority."""
    jobs = [
        NewJob(key, "t", {}, lock=None if key[0] == "-" else key[0], priority=int(key[-1]) if key[-1].isdigit() else 0)
        for key in keys
    ]
    await defer_once(connector, jobs)


async def states(connector: Connector) -> dict[str, str]:
    rows = await connector.execute_query_all_async(STATES)
    return {str(row["queueing_lock"])[5:]: f"{row['status']} {row['attempts']}" for row in rows}


async def fetched(manager: EngineJobManager, worker: int, count: int) -> list[str]:
    """Fetch this many jobs; return their keys."""
    jobs = [await manager.fetch_job(None, worker) for _ in range(count)]
    return [str(job.queueing_lock)[5:] if job else "nothing" for job in jobs]


async def test_a_worker_fetches_as_many_jobs_as_it_has_slots_and_one_per_lock(database: Database) -> None:
    connector, manager = database.connector, manager_of(database.connector, 3)
    await stored(connector, "a", "ab", "-x", "b", "c9", "-y")
    worker = await manager.register_worker()
    assert await fetched(manager, worker, 1) == ["c9"]
    assert [key for key, state in (await states(connector)).items() if state == "doing 0"] == ["a", "-x", "c9"]
    assert await fetched(manager, worker, 2) == ["a", "-x"]
    assert await fetched(manager, worker, 3) == ["b", "-y", "nothing"]


async def test_a_freed_slot_is_filled_again(database: Database) -> None:
    connector, manager = database.connector, manager_of(database.connector, 2)
    await stored(connector, *(f"-{n}x" for n in range(5)))
    worker = await manager.register_worker()
    first, _ = [cast("Job", await manager.fetch_job(None, worker)) for _ in range(2)]
    await manager.finish_job(first, Status.SUCCEEDED, delete_job=False)
    assert await fetched(manager, worker, 1) == ["-2x"]
    assert list((await states(connector)).values()) == ["succeeded 1", "doing 0", "doing 0", "todo 0", "todo 0"]


async def test_a_job_that_was_tried_before_is_fetched_alone(database: Database) -> None:
    """It may crash its process; jobs fetched with it would look as if they had been in progress."""
    connector, manager = database.connector, manager_of(database.connector, 9)
    await stored(connector, "-a", "-b", "-c", "-d")
    await connector.execute_query_async(TRIED, keys=["once:-b", "once:-c"])
    worker = await manager.register_worker()
    assert await fetched(manager, worker, 2) == ["-a", "-d"]
    assert await states(connector) == {"-a": "doing 0", "-b": "todo 1", "-c": "todo 1", "-d": "doing 0"}
    assert await fetched(manager, worker, 1) == ["-b"]
    assert (await states(connector))["-c"] == "todo 1"


async def test_a_job_behind_many_blocked_ones_is_found(database: Database) -> None:
    connector, manager = database.connector, manager_of(database.connector, 1)
    await stored(connector, *(f"a{n}x" for n in range(3 * WINDOW)), "b", "c")
    worker = await manager.register_worker()
    assert await fetched(manager, worker, 4) == ["a0x", "b", "c", "nothing"]


async def test_a_job_scheduled_for_later_still_holds_its_lock(database: Database) -> None:
    connector, manager = database.connector, manager_of(database.connector, 5)
    await stored(connector, "a", "ab", "-x")
    await connector.execute_query_async(LATER, keys=["once:a"])
    assert await fetched(manager, await manager.register_worker(), 2) == ["-x", "nothing"]


async def test_jobs_that_a_stopped_worker_had_not_begun_return_without_a_lost_try(database: Database) -> None:
    connector, manager = database.connector, manager_of(database.connector, 5)
    await stored(connector, "-a", "-b", "-c")
    worker = await manager.register_worker()
    assert await fetched(manager, worker, 1) == ["-a"]
    await manager.unregister_worker(worker)
    assert await states(connector) == {"-a": "doing 0", "-b": "todo 0", "-c": "todo 0"}
    assert await fetched(manager, await manager.register_worker(), 2) == ["-b", "-c"]


async def test_a_job_that_has_ended_names_no_worker(database: Database) -> None:
    """Otherwise the end of a worker would change all jobs that it ever ran."""
    connector, manager = database.connector, manager_of(database.connector, 5)
    await stored(connector, "-a", "-b", "-c")
    worker = await manager.register_worker()
    plain, noted, retried = [cast("Job", await manager.fetch_job(None, worker)) for _ in range(3)]
    leave_note(noted, Note(outcome=APPLIED))
    for job in (plain, noted):
        await manager.finish_job(job, Status.SUCCEEDED, delete_job=False)
    await manager.retry_job(retried, datetime.now(UTC))
    rows = await connector.execute_query_all_async(STATES)
    assert [(row["status"], row["worker_id"]) for row in rows] == [("succeeded", None)] * 2 + [("todo", None)]


@pytest.mark.parametrize(("replicas", "end"), [(2, "x"), (3, "x"), (3, "9")], ids=["two", "three", "plans"])
async def test_replicas_share_jobs_and_locks(database_url: str, replicas: int, end: str) -> None:
    databases = [Database(database_url) for _ in range(replicas)]
    for database in databases:
        await database.open()
    keys = [f"{lock}{n}{end}" for n in range(20) for lock in "abcdefgh-"]
    await stored(databases[0].connector, *keys)
    try:
        runs = await asyncio.gather(*(_work(database) for database in databases))
    finally:
        for database in databases:
            await database.close()
    done = [key for run in runs for key in run]
    assert sorted(done) == sorted(keys)
    for run in runs:
        for lock in "abcdefgh":
            numbers = [int(key[1:-1]) for key in run if key[0] == lock]
            assert numbers == sorted(numbers)


async def _work(database: Database) -> list[str]:
    manager = manager_of(database.connector, 4)
    worker, keys, jobs = await manager.register_worker(), list[str](), list[Job]()
    # The last round may have left fetched jobs with the manager.
    while jobs or any(state.startswith("todo") for state in (await states(database.connector)).values()):
        jobs = [job for job in [await manager.fetch_job(None, worker) for _ in range(4)] if job]
        keys += [str(job.queueing_lock)[5:] for job in jobs]
        for job in jobs:
            leave_note(job, Note(outcome=APPLIED))
            await manager.finish_job(job, Status.SUCCEEDED, delete_job=False)
    return keys


async def test_a_job_stored_after_a_fetch_wakes_the_worker_even_on_a_busy_event_loop(
    sqlite_url: str,
) -> None:
    """The event loop gets the answer of a fetch together with notifications from before it and after it."""
    path = Path(with_tables(sqlite_url).removeprefix("sqlite:///"))
    connector = SqliteConnector(path, most_at_once=1)
    await connector.open_async()
    manager, woken = manager_of(connector, 2), asyncio.Event()

    async def hear(*, channel: str, payload: str) -> None:
        woken.set()

    async def fetch() -> None:
        assert await manager.fetch_job(None, worker) is None
        woken.clear()  # as the worker does

    listening = asyncio.create_task(connector.listen_notify(hear, [ANY_QUEUE]))
    worker = await manager.register_worker()
    writer = sqlite3.connect(path, isolation_level=None)
    try:
        writer.execute("BEGIN IMMEDIATE")
        later = [NewJob("before", "t", {}, scheduled_at=datetime.now(UTC) + timedelta(days=1))]
        tasks = [asyncio.create_task(defer_once(connector, later)), asyncio.create_task(fetch())]
        tasks += [asyncio.create_task(stored(connector, key)) for key in ("after", "last")]
        await asyncio.sleep(0)  # all of them are waiting now
        writer.execute("ROLLBACK")
        while not writer.execute("SELECT 1 FROM procrastinate_jobs WHERE queueing_lock = 'once:last'").fetchone():
            """The event loop is busy until all of it is stored."""
        await asyncio.gather(*tasks)
        await until(woken.is_set)
    finally:
        writer.close()
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await connector.close_async()


@contextlib.asynccontextmanager
async def listening(database: Database) -> AsyncIterator[None]:
    async def hear(*, channel: str, payload: str) -> None:
        """Do nothing: no worker listens here."""

    task = asyncio.create_task(database.connector.listen_notify(hear, [ANY_QUEUE]))
    await until(lambda: database.connector.notification_count is not None)
    if not database.embedded:
        # On PostgreSQL it counts the moment from which it hears of others.
        await until(lambda: database.connector.notification_count)
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


STARTS_AT = "UPDATE procrastinate_jobs SET scheduled_at = {at} WHERE queueing_lock = 'once:-x'"


async def test_after_fetching_all_available_jobs_the_worker_asks_again_only_after_a_notification(
    database: Database,
) -> None:
    """Without this, the worker would always ask once more, and at each poll."""
    connector, manager = database.connector, manager_of(database.connector, 9)
    worker = await manager.register_worker()
    async with listening(database):
        await stored(connector, "a")
        await stored(connector, "-x")
        # There is no notification when a waiting job's time comes.
        await connector.execute_query_async(STARTS_AT.format(at="to_timestamp(4102444800)"))
        assert await fetched(manager, worker, 1) == ["a"]
        await connector.execute_query_async(STARTS_AT.format(at="NULL"))
        assert await fetched(manager, worker, 2) == ["nothing", "-x"]
        count_before = connector.notification_count
        await stored(connector, "b")
        assert connector.notification_count != count_before
        assert await fetched(manager, worker, 1) == ["b"]


async def test_a_fetch_behind_the_end_of_a_job_does_not_count_that_end_as_news(tmp_path: Path) -> None:
    """A worker fetches when its job ends, and the end of that job is what is announced next."""
    database = Database(f"sqlite:///{tmp_path}/nightjar.db")
    await database.open()
    connector, manager = database.connector, manager_of(database.connector, 9)
    worker = await manager.register_worker()
    async with listening(database):
        await stored(connector, "a", "ab", "-x")
        await connector.execute_query_async(STARTS_AT.format(at="to_timestamp(4102444800)"))
        first = cast("Job", await manager.fetch_job(None, worker))
        assert await fetched(manager, worker, 1) == ["nothing"]
        # While another program writes, both wait for one transaction.
        with contextlib.closing(sqlite3.connect(tmp_path / "nightjar.db", isolation_level=None)) as writer:
            writer.execute("BEGIN IMMEDIATE")
            ending = asyncio.create_task(manager.finish_job(first, Status.SUCCEEDED, delete_job=False))
            fetching = asyncio.create_task(fetched(manager, worker, 1))
            for _ in range(10):
                await asyncio.sleep(0)
            writer.execute("ROLLBACK")
        await ending
        assert await fetching == ["ab"]
        await connector.execute_query_async(STARTS_AT.format(at="NULL"))
        assert await fetched(manager, worker, 2) == ["nothing", "-x"]
    await database.close()


@pytest.mark.parametrize(
    ("slots", "order"), [(9, "a -x -z -y"), (2, "a -x -y -z")], ids=["tried before", "no free slot"]
)
async def test_jobs_that_a_fetch_leaves_are_fetched_by_the_next_one(database: Database, slots: int, order: str) -> None:
    connector, manager = database.connector, manager_of(database.connector, slots)
    worker = await manager.register_worker()
    async with listening(database):
        for key in ("a", "-x", "-y", "-z"):
            await stored(connector, key)
        await connector.execute_query_async(TRIED, keys=["once:-y"])
        assert " ".join(await fetched(manager, worker, 4)) == order
