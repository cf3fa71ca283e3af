"""How a try ends is stored, whatever else fails at that moment."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest
from procrastinate import App, JobContext
from procrastinate.connector import BaseAsyncConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.jobs import Job

from bot.core.errors import TryAgain
from bot.engine.attempt import Attempt, JobOutcome
from bot.engine.database import Database
from bot.engine.guard import Guard
from bot.engine.jobs import Origin
from bot.engine.notes import APPLIED, AWAY, RETRYING, Note, read_note, write_note
from bot.engine.once import NewJob, defer_once
from bot.engine.processor import NobodyWatches
from bot.engine.retry import MAX_ALONE, Again, Tries
from bot.engine.store import Store
from bot.engine.tasks import Tasks
from bot.github.errors import kind_of
from tests.engine.toy import Toy, World

AFTER_AN_OUTAGE = Tries(away=3, away_since=1_700_000_000.0)
POSTPONE = "UPDATE procrastinate_jobs SET scheduled_at = now() WHERE id = %(id)s"
REFUSE = """
CREATE TRIGGER refuse BEFORE UPDATE OF scheduled_at ON procrastinate_jobs WHEN NEW.scheduled_at IS NULL
BEGIN SELECT RAISE(ABORT, 'the disk is full'); END
"""

REFUSE_NOTES = """
CREATE TRIGGER refuse_notes BEFORE INSERT ON nightjar_notes BEGIN SELECT RAISE(ABORT, 'not this one'); END
"""


@pytest.fixture
async def connector(sqlite_url: str) -> AsyncIterator[BaseAsyncConnector]:
    """Return an open database in which no job that waits for an answer can be released."""
    database = Database(sqlite_url)
    await database.open()
    await database.connector.execute_query_async(REFUSE)
    yield database.connector
    await database.close()


async def waiting(connector: BaseAsyncConnector, *keys: str) -> list[int]:
    """Store jobs that wait for an answer, and return their ids."""
    jobs = await defer_once(connector, [NewJob(key=key, task="effect", args={}) for key in keys])
    for job in jobs:
        await write_note(connector, job.job_id, Note(outcome=AWAY, tries=AFTER_AN_OUTAGE))
        await connector.execute_query_async(POSTPONE, id=job.job_id)
    return [job.job_id for job in jobs]


def attempt(job_id: int, end: JobOutcome | BaseException, *, guard: Guard | None = None, attempts: int = 3) -> Attempt:
    """Return the next try of such a job, which has its answer now."""

    async def work() -> JobOutcome:
        if isinstance(end, BaseException):
            raise end
        return end

    job = Job(
        id=job_id, status="doing", queue="q", lock=None, queueing_lock=None, task_name="effect", attempts=attempts
    )
    seen: dict[str, Any] = {"watch": lambda *_: None, "message": str, "kind_of": kind_of, "labels": {}}
    return Attempt(job=job, work=work, guard=guard or Guard(), **seen)


@contextmanager
def outage(url: str) -> Iterator[None]:
    """Let nobody read or write the database."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        yield


async def test_an_applied_effect_has_ended_even_if_the_jobs_that_wait_cannot_be_released(
    connector: BaseAsyncConnector,
) -> None:
    job, _ = await waiting(connector, "a", "b")
    await attempt(job, JobOutcome(APPLIED, "written")).run(connector)
    assert await read_note(connector, job) == Note(outcome=APPLIED, text="written", tries=AFTER_AN_OUTAGE)


async def test_a_try_that_failed_is_counted_even_if_the_jobs_that_wait_cannot_be_released(
    connector: BaseAsyncConnector,
) -> None:
    job, _ = await waiting(connector, "a", "b")
    with pytest.raises(Again):
        await attempt(job, TryAgain("answered, but not yet")).run(connector)
    note = await read_note(connector, job)
    assert (note.outcome, note.tries) == (RETRYING, replace(AFTER_AN_OUTAGE, away_since=0.0, backed_off=1))


@pytest.fixture
async def unwaiting(sqlite_url: str) -> AsyncIterator[BaseAsyncConnector]:
    """Return an open database that does not wait for a lock."""
    database = Database(sqlite_url)
    await database.open()
    await database.connector.execute_query_async("PRAGMA busy_timeout = 0")
    yield database.connector
    await database.close()


@pytest.mark.parametrize("end", [JobOutcome(APPLIED, "written"), TryAgain("not yet"), Again(1.0, None)])
@pytest.mark.parametrize("attempts", [0, 1])
async def test_a_try_whose_end_could_not_be_stored_in_an_outage_is_no_crash(
    unwaiting: BaseAsyncConnector, sqlite_url: str, end: JobOutcome | Exception, attempts: int
) -> None:
    (job,) = await defer_once(unwaiting, [NewJob(key="a", task="effect", args={})])
    guard, before = Guard(), Tries(stopped=attempts, alone=MAX_ALONE - 1)
    await write_note(unwaiting, job.job_id, Note(outcome=RETRYING, tries=before))
    for more in range(3):
        with outage(sqlite_url), pytest.raises((ConnectorException, Again)):
            await attempt(job.job_id, end, guard=guard, attempts=attempts + more).run(unwaiting)
    await attempt(job.job_id, JobOutcome(APPLIED, "at last"), guard=guard, attempts=attempts + 3).run(unwaiting)
    tries = (await read_note(unwaiting, job.job_id)).tries
    assert tries == Tries(stopped=attempts + 3)
    assert tries.lost(attempts + 3) == 0


async def test_a_try_that_was_stopped_in_an_outage_is_no_crash(unwaiting: BaseAsyncConnector, sqlite_url: str) -> None:
    (job,) = await defer_once(unwaiting, [NewJob(key="a", task="effect", args={})])
    guard = Guard()
    with outage(sqlite_url), pytest.raises(asyncio.CancelledError):
        await attempt(job.job_id, asyncio.CancelledError(), guard=guard, attempts=0).run(unwaiting)
    await attempt(job.job_id, JobOutcome(APPLIED, "at last"), guard=guard, attempts=1).run(unwaiting)
    assert (await read_note(unwaiting, job.job_id)).tries == Tries(stopped=1)


async def test_an_effect_whose_writes_could_not_be_read_in_an_outage_is_no_crash(
    unwaiting: BaseAsyncConnector, sqlite_url: str, world: World
) -> None:
    guard = Guard()
    tasks = Tasks(Store(unwaiting), Toy(world), NobodyWatches(), guard)
    job = attempt(7, JobOutcome(APPLIED, "")).job
    context = JobContext(app=App(connector=unwaiting), job=job, start_timestamp=0.0, abort_reason=lambda: None)
    origin = Origin("g", "a", "i", delivery_job=1, received_at=0.0, replay=0, lock=None)
    with outage(sqlite_url), pytest.raises(ConnectorException):
        await tasks.effect(context, **origin.args, effect={"kind": "Write"}, target="x")
    assert guard.outlived(7) == 1


async def test_what_is_no_outage_counts_as_before(connector: BaseAsyncConnector) -> None:
    """A note that can never be stored must at some time quarantine its job."""
    await connector.execute_query_async(REFUSE_NOTES)
    (job,) = await defer_once(connector, [NewJob(key="a", task="effect", args={})])
    guard = Guard()
    with pytest.raises(ConnectorException):
        await attempt(job.job_id, JobOutcome(APPLIED, "written"), guard=guard, attempts=0).run(connector)
    assert guard.outlived(job.job_id) == 0
