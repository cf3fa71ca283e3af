"""Engines in a test's own process, and functions that wait for and read their outcomes."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterable
from typing import LiteralString

from bot.engine.jobs.journal import DeliveryRecord
from bot.engine.service import Engine, JobObserver, WorkerPace
from tests.engine.toy import Toy, World
from tests.waiting import until

QUICK = WorkerPace(poll=0.05, stalled=2.0, reap=0.2, graceful=5.0, min_age=0.05)
"""A pace with tenths of seconds instead of production's seconds."""

LOCK = "pr:1#7"


@contextlib.asynccontextmanager
async def opened(url: str, world: World | None = None) -> AsyncIterator[Engine]:
    """Open an engine that only accepts, reads and replays, but does not work."""
    async with Engine(url, Toy(world) if world else None) as engine:
        yield engine


@contextlib.asynccontextmanager
async def running(
    url: str,
    world: World,
    *,
    pace: WorkerPace = QUICK,
    observer: JobObserver | None = None,
    clock: Callable[[], float] = time.time,
) -> AsyncIterator[Engine]:
    """Run an engine with a toy processor, and stop it gracefully."""
    engine = Engine(url, Toy(world), pace=pace, observer=observer, clock=clock)
    async with engine:
        await engine.recover()
        work = asyncio.create_task(engine.run())
        await until(lambda: engine.ready() is None)
        try:
            yield engine
        finally:
            await engine.stop()
            await work


JOBS: LiteralString = """
SELECT job.id, job.task_name, job.status, job.lock, job.attempts, job.worker_id, job.scheduled_at, note.outcome
  FROM procrastinate_jobs AS job LEFT JOIN nightjar_notes AS note ON note.job_id = job.id
 WHERE job.status NOT IN ('succeeded') ORDER BY job.id
"""


async def settled(engine: Engine, *guids: str) -> list[DeliveryRecord]:
    """Wait until these deliveries have no work left; return their outcomes.

    If that takes too long, the error lists the unfinished jobs.
    """

    records: list[DeliveryRecord] = []

    async def all_settled() -> bool:
        for guid in guids[len(records) :]:
            record = await engine.journal.delivery(guid)
            if record is None or not record.settled:
                return False
            records.append(record)
        return True

    try:
        await until(all_settled)
    except AssertionError as error:
        unfinished = await engine.database.connector.execute_query_all_async(JOBS)
        raise AssertionError("\n".join([f"{error}; of its jobs are left:", *map(str, unfinished)])) from None
    return records


def outcomes(record: DeliveryRecord) -> dict[str, str]:
    """Return how each effect of a delivery ended, by `handler target`."""
    return {f"{p.handler} {e.target}": e.job.outcome for p in record.plans for e in p.effects}


def texts(record: DeliveryRecord) -> dict[str, str]:
    """Return the note of each effect of a delivery, by `handler target`."""
    return {f"{p.handler} {e.target}": e.job.text for p in record.plans for e in p.effects}


def twice(written: Iterable[str]) -> list[str]:
    """Return the items that occur more than once."""
    seen: set[str] = set()
    return [key for key in written if key in seen or seen.add(key)]  # type: ignore[func-returns-value]
