"""A key is done once, however often and by however many it is requested."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import cast

import pytest
from procrastinate.connector import BaseAsyncConnector
from procrastinate.exceptions import AlreadyEnqueued
from procrastinate.jobs import Job, Notification, Status
from procrastinate.manager import JobManager

from bot.engine.database import Database
from bot.engine.jobs.once import Deferred, NewJob, defer_once
from tests.waiting import until


def new(key: str, **columns: object) -> NewJob:
    return NewJob(key=key, task="deliver", args={"guid": key}, **columns)  # type: ignore[arg-type]


async def finish_all(connector: BaseAsyncConnector) -> None:
    manager = JobManager(connector)
    worker = await manager.register_worker()
    while job := await manager.fetch_job(None, worker):
        await manager.finish_job(job, Status.SUCCEEDED, delete_job=False)


async def test_new_jobs_are_inserted_and_existing_ones_named(database: Database) -> None:
    connector = database.connector
    (first,) = await defer_once(connector, [new("a")])
    assert first == Deferred(first.job_id, "todo", new=True)
    await finish_all(connector)
    b, a, b_again, c = await defer_once(connector, [new("b"), new("a"), new("b"), new("c")])
    assert (b.new, b.status) == (True, "todo")
    assert a == Deferred(first.job_id, "succeeded", new=False)
    assert b_again == Deferred(b.job_id, "todo", new=False)
    assert c.new
    assert c.job_id > b.job_id
    assert await defer_once(connector, []) == []


async def test_all_fields_of_a_job_are_stored(database: Database) -> None:
    job = NewJob(key="k", task="effect", args={"text": "\x00 \ud800 ✓"}, lock="pr:1#2", priority=10, queue="q")
    (deferred,) = await defer_once(database.connector, [job])
    (stored,) = await JobManager(database.connector).list_jobs_async()
    assert stored == Job(
        id=deferred.job_id,
        status="todo",
        queue="q",
        priority=10,
        lock="pr:1#2",
        queueing_lock="once:k",
        task_name="effect",
        task_kwargs={"text": "\x00 \ud800 ✓"},
    )


async def test_of_many_concurrent_requests_only_one_creates_the_job(database: Database) -> None:
    answers = await asyncio.gather(
        *(defer_once(database.connector, [new(f"k{n}") for n in range(5)]) for _ in range(10))
    )
    for n in range(5):
        assert sum(answer[n].new for answer in answers) == 1
        assert len({answer[n].job_id for answer in answers}) == 1


@pytest.mark.parametrize("ended", [False, True])
async def test_procrastinates_own_insert_agrees_about_waiting_and_ended_jobs(database: Database, ended: bool) -> None:
    manager = JobManager(database.connector)
    job = Job(queue="q", lock=None, queueing_lock="once:k", task_name="t")
    await manager.defer_job_async(job)
    if ended:
        await finish_all(database.connector)
    with pytest.raises(AlreadyEnqueued):
        await manager.defer_job_async(job)


async def test_workers_are_notified_of_new_jobs_and_released_locks(database: Database) -> None:
    manager = JobManager(database.connector)
    heard: list[str] = []

    async def hear(*, channel: str, notification: Notification) -> None:
        assert channel == "procrastinate_any_queue_v1"
        heard.append(notification["type"])

    async def heard_of_an_insert() -> bool:
        await defer_once(database.connector, [new(f"probe {len(probes)}")])
        probes.append(None)
        return bool(heard)

    async def hear_of(kind: str, change: Awaitable[object]) -> None:
        heard.clear()
        await change
        await until(lambda: kind in heard)

    probes: list[None] = []
    listening = asyncio.create_task(manager.listen_for_jobs(on_notification=hear))
    await until(heard_of_an_insert)
    await finish_all(database.connector)

    await hear_of("job_inserted", defer_once(database.connector, [new("1", lock="l"), new("2", lock="l")]))
    worker = await manager.register_worker()
    first = await manager.fetch_job(None, worker)
    assert first is not None
    await hear_of("job_inserted", manager.finish_job(first, Status.SUCCEEDED, delete_job=False))
    second = await manager.fetch_job(None, worker)
    assert second is not None
    await hear_of("abort_job_requested", manager.cancel_job_by_id_async(cast("int", second.id), abort=True))
    # Nothing waits under the lock any more, so nobody must wake.
    count_before = database.connector.notification_count
    await manager.finish_job(second, Status.ABORTED, delete_job=False)
    assert database.connector.notification_count == count_before
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)
