"""Jobs that died with their worker run again, once; old jobs are removed, with their notes."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
from procrastinate.connector import BaseAsyncConnector
from procrastinate.jobs import Job, Status
from procrastinate.manager import JobManager

from bot.engine.database import Database
from bot.engine.jobs.once import NewJob, defer_once
from bot.engine.sql.transactions import Connector
from bot.engine.upkeep import (
    BATCH,
    REMOVE_DONE,
    REMOVE_FAILED,
    REMOVE_IGNORED,
    remove_old,
    requeue_all,
    requeue_stalled,
    worker_states,
)


async def started(connector: BaseAsyncConnector, *keys: str, **columns: object) -> int:
    """Insert jobs and let a worker fetch them; return the worker."""
    manager = JobManager(connector)
    await defer_once(connector, [NewJob(key=key, task="t", args={}, **columns) for key in keys])  # type: ignore[arg-type]
    worker = await manager.register_worker()
    for _ in keys:
        assert await manager.fetch_job(None, worker)
    return worker


async def statuses(connector: Connector) -> dict[str, str]:
    """Return the status of each key's job."""
    rows = await connector.execute_query_all_async("SELECT queueing_lock, status FROM procrastinate_jobs")
    return {str(row["queueing_lock"]).removeprefix("once:"): str(row["status"]) for row in rows}


async def silence(connector: Connector, worker: int, seconds: float) -> None:
    await connector.execute_query_async(
        "UPDATE procrastinate_workers SET last_heartbeat = to_timestamp(date_part('epoch', now()) - %(seconds)s)"
        " WHERE id = %(worker)s",
        worker=worker,
        seconds=seconds,
    )


async def age(connector: Connector, days: float) -> None:
    await connector.execute_query_async(
        "UPDATE procrastinate_events SET at = to_timestamp(date_part('epoch', at) - %(seconds)s)",
        seconds=days * 86400,
    )


async def test_the_jobs_of_silent_workers_return_and_those_of_live_ones_stay(database: Database) -> None:
    connector = database.connector
    silent = await started(connector, "silent 1", "silent 2")
    await started(connector, "live")
    stopped = await started(connector, "stopped")
    await silence(connector, silent, 25)
    await JobManager(connector).unregister_worker(stopped)
    # Operators are shown what happens next.
    dead_by_worker = {state.worker_id: state.counts_as_dead for state in await worker_states(connector, 20)}
    assert (dead_by_worker[silent], sorted(dead_by_worker.values())) == (True, [False, True])
    requeued = await requeue_stalled(connector, seconds=20)
    assert sorted((r.task, r.status, r.attempts) for r in requeued) == [("t", "todo", 1)] * 3
    assert await statuses(connector) == {"silent 1": "todo", "silent 2": "todo", "stopped": "todo", "live": "doing"}
    (workers,) = await connector.execute_query_all_async("SELECT count(*) AS n FROM procrastinate_workers")
    assert workers == {"n": 1}


async def test_of_several_reapers_only_one_returns_a_job(database: Database) -> None:
    worker = await started(database.connector, *(str(n) for n in range(20)))
    await silence(database.connector, worker, 60)
    answers = await asyncio.gather(*(requeue_stalled(database.connector, seconds=20) for _ in range(5)))
    assert sum(len(answer) for answer in answers) == 20
    assert {r.attempts for answer in answers for r in answer} == {1}


async def test_at_start_every_running_job_returns(database: Database) -> None:
    await started(database.connector, "a", "b")
    assert {r.status for r in await requeue_all(database.connector)} == {"todo"}
    assert await statuses(database.connector) == {"a": "todo", "b": "todo"}


async def test_a_job_that_was_asked_to_stop_fails_instead_of_returning(database: Database) -> None:
    await started(database.connector, "a")
    (job,) = await JobManager(database.connector).list_jobs_async()
    assert job.id is not None
    await JobManager(database.connector).cancel_job_by_id_async(job.id, abort=True)
    assert [r.status for r in await requeue_all(database.connector)] == ["failed"]
    await JobManager(database.connector).retry_job_by_id_async(job.id, retry_at=datetime.now(UTC))
    assert await statuses(database.connector) == {"a": "todo"}


async def test_a_job_whose_queueing_lock_is_taken_does_not_keep_others_from_returning(database: Database) -> None:
    manager = JobManager(database.connector)
    worker = await started(database.connector, "other")
    for _ in range(2):
        await manager.defer_job_async(Job(queue="q", lock=None, queueing_lock="sweep", task_name="t"))
        await manager.fetch_job(None, worker)
    await manager.defer_job_async(Job(queue="q", lock=None, queueing_lock="sweep", task_name="t"))
    assert sorted(r.status for r in await requeue_all(database.connector)) == ["failed", "failed", "todo"]


async def test_old_ended_jobs_are_removed_with_their_notes(database: Database) -> None:
    connector, manager = database.connector, JobManager(database.connector)
    await started(connector, "succeeded", "failed", "running")
    await defer_once(connector, [NewJob("waiting", "t", {}), NewJob("cancelled", "t", {})])
    by_key = {str(job.queueing_lock).removeprefix("once:"): job for job in await manager.list_jobs_async()}
    await manager.finish_job(by_key["succeeded"], Status.SUCCEEDED, delete_job=False)
    await manager.finish_job(by_key["failed"], Status.FAILED, delete_job=False)
    await manager.cancel_job_by_id_async(by_key["cancelled"].id or 0)
    for job in by_key.values():
        await connector.execute_query_async(
            "INSERT INTO nightjar_notes (job_id, at, outcome, text) VALUES (%(id)s, 0, 'applied', '')", id=job.id
        )

    assert await remove_old(connector) == 0
    await age(connector, 6.9)
    assert await remove_old(connector) == 0
    await age(connector, 0.2)
    assert await remove_old(connector) == 2
    assert (await statuses(connector)).keys() == {"failed", "running", "waiting"}
    await age(connector, 23)
    assert await remove_old(connector) == 1
    assert (await statuses(connector)).keys() == {"running", "waiting"}
    (notes,) = await connector.execute_query_all_async("SELECT count(*) AS n FROM nightjar_notes")
    assert notes == {"n": 2}


async def test_a_job_that_failed_again_recently_is_not_removed(database: Database) -> None:
    connector, manager = database.connector, JobManager(database.connector)
    await started(connector, "a")
    (job,) = await manager.list_jobs_async()
    await manager.finish_job(job, Status.FAILED, delete_job=False)
    await age(connector, 40)
    await manager.retry_job(job)
    await manager.fetch_job(None, await manager.register_worker())
    await manager.finish_job(job, Status.FAILED, delete_job=False)
    assert await remove_old(connector) == 0
    assert await statuses(connector) == {"a": "failed"}


async def cancelled_long_ago(connector: Connector) -> None:
    await defer_once(connector, [NewJob(str(n), "t", {}) for n in range(BATCH + 1)])
    await connector.execute_query_async("UPDATE procrastinate_jobs SET status = 'cancelled'")
    await age(connector, 8)


async def test_more_than_one_batch_is_removed(database: Database) -> None:
    connector = database.connector
    await cancelled_long_ago(connector)
    assert await remove_old(connector) == BATCH + 1
    assert await statuses(connector) == {}


def reads(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield each step that reads a table."""
    if "Relation Name" in plan and plan["Node Type"] != "ModifyTable":
        yield plan
    for inner in plan.get("Plans", ()):
        yield from reads(inner)


async def test_outdated_statistics_do_not_make_a_removal_read_a_table_once_per_row(
    postgres_with_tables: str,
) -> None:
    database = Database(postgres_with_tables)
    await database.open()
    try:
        await cancelled_long_ago(database.connector)
        with psycopg.connect(postgres_with_tables, autocommit=True) as connection:
            tables = ("procrastinate_jobs", "procrastinate_events")
            for table in tables:
                # Autovacuum does this after a complete removal, before other tables can use the space.
                connection.execute(f"DELETE FROM {table}".encode())
                connection.execute(f"ANALYZE {table}".encode())
            await cancelled_long_ago(database.connector)
            for statement in (REMOVE_DONE, REMOVE_FAILED, REMOVE_IGNORED):
                values = {"before": 1, "batch": 1}
                row = connection.execute(f"EXPLAIN (FORMAT JSON) {statement}".encode(), values).fetchone()
                assert row is not None
                steps = [step for step in reads(row[0][0]["Plan"]) if step["Relation Name"] in tables]
                assert steps
                # A bitmap of an index's rows shows the condition below it, and again where rows must be rechecked.
                assert [step for step in steps if not step.keys() & {"Index Cond", "Recheck Cond"}] == []
        assert await remove_old(database.connector) == BATCH + 1
    finally:
        await database.close()
