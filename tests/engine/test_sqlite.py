"""One SQLite file with many callers: answered writes are stored, and nobody waits for ever."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import sqlite3
import struct
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from procrastinate.exceptions import AlreadyEnqueued
from procrastinate.jobs import Job
from procrastinate.manager import JobManager

from bot.engine.database import Database
from bot.engine.jobs.once import NewJob, defer_once
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sqlite.connector import SqliteConnector
from bot.engine.sqlite.queries import FETCH_JOB
from tests.waiting import until

COUNT = "SELECT count(*) AS n FROM procrastinate_jobs"
INSERT = "INSERT INTO procrastinate_jobs (queue_name, task_name, args) VALUES ('q', 't', %(args)s)"


@pytest.fixture
async def connector(tmp_path: Path) -> AsyncIterator[SqliteConnector]:
    opened = SqliteConnector(tmp_path / "nightjar.db")
    await opened.open_async()
    yield opened
    await opened.close_async()


def job(**columns: object) -> Job:
    return Job(**({"queue": "q", "lock": None, "queueing_lock": None, "task_name": "t"} | columns))  # type: ignore[arg-type]


async def count(connector: SqliteConnector) -> object:
    return (await connector.execute_query_one_async(COUNT))["n"]


def commits(path: Path) -> int:
    """Count the commits in a write-ahead log (https://sqlite.org/fileformat2.html#the_write_ahead_log)."""
    log = path.with_name(path.name + "-wal").read_bytes()
    (page_size,) = struct.unpack_from(">I", log, 8)
    salt = log[16:24]
    frames = range(32, len(log) - page_size, 24 + page_size)
    return sum(
        1 for offset in frames if log[offset + 8 : offset + 16] == salt and log[offset + 4 : offset + 8] != bytes(4)
    )


@contextlib.contextmanager
def held_by_another(path: Path) -> Iterator[None]:
    """Keep everybody else from writing, like another process in the middle of a transaction."""
    writer = sqlite3.connect(path, isolation_level=None)
    writer.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        writer.execute("ROLLBACK")
        writer.close()


async def start_operations(*operations: object) -> list[asyncio.Task[None]]:
    """Start operations, and return when all of them wait for the writer."""
    tasks = [asyncio.ensure_future(operation) for operation in operations]  # type: ignore[call-overload]
    for _ in range(3):
        await asyncio.sleep(0)
    return tasks


async def test_waiting_writes_share_one_commit(connector: SqliteConnector) -> None:
    commits_before = commits(connector.path)
    with held_by_another(connector.path):
        tasks = await start_operations(*(connector.execute_query_async(INSERT, args={"n": n}) for n in range(100)))
    await asyncio.gather(*tasks)
    assert await count(connector) == 100
    assert commits(connector.path) - commits_before <= 2  # one for the first that waited, one for all others


async def test_a_refused_operation_does_not_affect_the_others(connector: SqliteConnector) -> None:
    manager = JobManager(connector)
    with held_by_another(connector.path):
        tasks = await start_operations(
            *(manager.defer_job_async(job(queueing_lock=f"once:{n // 2}", task_kwargs={"n": n})) for n in range(10))
        )
    answers = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(answer) for answer in answers] == [Job, AlreadyEnqueued] * 5
    assert await count(connector) == 5


async def test_several_jobs_are_inserted_all_or_none(connector: SqliteConnector) -> None:
    manager = JobManager(connector)
    with pytest.raises(AlreadyEnqueued, match="twice"):
        await manager.batch_defer_jobs_async([job(), job(queueing_lock="twice"), job(queueing_lock="twice")])
    assert await count(connector) == 0


async def test_the_operation_of_a_caller_who_left_before_its_turn_is_not_run(connector: SqliteConnector) -> None:
    with held_by_another(connector.path):
        first, cancelled, last = await start_operations(
            *(connector.execute_query_async(INSERT, args={"n": n}) for n in range(3))
        )
        cancelled.cancel()
    await asyncio.gather(first, last)
    assert await count(connector) == 2


async def test_a_full_disk_fails_every_caller_and_loses_nothing(connector: SqliteConnector) -> None:
    await connector.execute_query_async(INSERT, args={"n": 0})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = connector.path.with_name(connector.path.name + "-wal")
    with held_by_another(connector.path):
        tasks = await start_operations(
            *(connector.execute_query_async(INSERT, args={"n": "x" * 50_000}) for _ in range(20))
        )
        resource.setrlimit(resource.RLIMIT_FSIZE, (log.stat().st_size + 4_096, hard))
    try:
        answers = await asyncio.gather(*tasks, return_exceptions=True)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert {type(answer) for answer in answers} == {DatabaseFailure}
    assert await count(connector) == 1
    await connector.execute_query_async(INSERT, args={"n": 1})
    assert await count(connector) == 2


async def test_a_database_at_its_maximum_size_still_answers_reads(connector: SqliteConnector) -> None:
    (pages,) = (await connector.execute_query_one_async("PRAGMA page_count")).values()
    await connector.execute_query_async(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(DatabaseFailure, match="full"):
        await connector.execute_query_async(INSERT, args={"n": "x" * 100_000})
    assert await count(connector) == 0


async def test_closing_stores_what_was_requested_before(tmp_path: Path) -> None:
    connector = SqliteConnector(tmp_path / "nightjar.db")
    await connector.open_async()
    with held_by_another(connector.path):
        tasks = await start_operations(*(connector.execute_query_async(INSERT, args={"n": n}) for n in range(20)))
        closing = asyncio.ensure_future(connector.close_async())
        await asyncio.sleep(0)
    await asyncio.gather(*tasks, closing)
    with pytest.raises(DatabaseFailure, match="not open"):
        await count(connector)
    await connector.open_async()
    assert await count(connector) == 20
    await connector.close_async()


def test_the_connector_outlives_the_event_loop_that_opened_it(tmp_path: Path) -> None:
    connector = SqliteConnector(tmp_path / "nightjar.db")
    asyncio.run(connector.open_async())
    asyncio.run(connector.execute_query_async(INSERT, args={}))
    assert connector.execute_query_one(COUNT) == {"n": 1}
    asyncio.run(connector.close_async())


async def test_an_answer_for_a_closed_loop_disturbs_nobody(connector: SqliteConnector) -> None:
    def ask_and_leave() -> None:
        loop = asyncio.new_event_loop()
        task = loop.create_task(connector.execute_query_async(INSERT, args={}))
        loop.call_soon(loop.stop)
        loop.run_forever()
        task.get_coro().close()
        task._log_destroy_pending = False  # type: ignore[attr-defined]  # on purpose
        loop.close()

    with held_by_another(connector.path):
        await asyncio.to_thread(ask_and_leave)
    await until(lambda: count(connector))


async def test_no_job_is_fetched_twice_by_two_processes(connector: SqliteConnector) -> None:
    jobs = [NewJob(key=str(n), task="t", args={}, lock=f"l{n % 7}" if n % 2 else None) for n in range(60)]
    await defer_once(connector, jobs)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OTHER_PROCESS, str(connector.path), stdout=asyncio.subprocess.PIPE
    )
    own_ids = await work(connector)
    printed, _ = await process.communicate()
    other_ids = [int(line) for line in printed.split()]
    assert sorted(own_ids + other_ids) == list(range(1, 61))


OTHER_PROCESS = """
import asyncio, pathlib, sys
from bot.engine.sqlite.connector import SqliteConnector
from tests.engine.test_sqlite import work

async def main():
    connector = SqliteConnector(pathlib.Path(sys.argv[1]))
    await connector.open_async()
    print(*await work(connector), sep="\\n")
    await connector.close_async()

asyncio.run(main())
"""


async def work(connector: SqliteConnector) -> list[int]:
    """Fetch and finish jobs until all are done; return the IDs of the fetched jobs."""
    manager = JobManager(connector)
    worker = await manager.register_worker()
    ids: list[int] = []
    count_open = "SELECT count(*) AS n FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
    while (await connector.execute_query_one_async(count_open))["n"]:
        fetched = await manager.fetch_job(None, worker)
        if fetched is None:
            await asyncio.sleep(0)
            continue
        assert fetched.id is not None
        await connector.execute_query_async(
            "UPDATE procrastinate_jobs SET status = 'succeeded', worker_id = NULL WHERE id = %(id)s", id=fetched.id
        )
        ids.append(fetched.id)
    return ids


async def test_a_fetch_does_not_read_the_arguments_of_jobs_that_it_skips(sqlite_url: str) -> None:
    """With a backlog, a fetch costs only the reading of the index (benchmarks measure it)."""
    database = Database(sqlite_url)
    await database.open()
    arguments = {"queues": None, "worker_id": 1, "now": 0.0}
    plan = [
        str(row["detail"])
        for row in await database.connector.execute_query_all_async(
            "EXPLAIN QUERY PLAN"
            + FETCH_JOB.replace(":worker_id", "%(worker_id)s")
            .replace(":queues", "%(queues)s")
            .replace(":now", "%(now)s"),
            **arguments,
        )
    ]
    await database.close()
    assert any("SCAN job USING COVERING INDEX procrastinate_jobs_priority_idx_v1" in step for step in plan), plan
    assert any("procrastinate_jobs_lock_head (lock=?)" in step for step in plan), plan
    assert not any("TEMP B-TREE" in step for step in plan), plan
