"""The end of a try is stored, whatever else fails at that moment."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import Any

import pytest
from procrastinate import App, JobContext
from procrastinate.jobs import Status

from bot.core.errors import TryAgain
from bot.engine.database import Database
from bot.engine.jobs.definitions import Origin
from bot.engine.jobs.inbox import RecentDeliveries
from bot.engine.jobs.notes import APPLIED, AWAY, RETRYING, Note, read_note, write_note
from bot.engine.jobs.once import NewJob, defer_once
from bot.engine.jobs.store import Store
from bot.engine.postgres.connector import PostgresConnector
from bot.engine.processor import NobodyWatches
from bot.engine.retry import MAX_ALONE, SUSPECT_AFTER, Postponed, RunAgain, Tries
from bot.engine.service import Engine
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sql.transactions import Connector
from bot.engine.sqlite.connector import SqliteConnector
from bot.engine.worker.guard import Guard
from bot.engine.worker.manager import EngineJobManager, QuietJob
from bot.engine.worker.queue import EngineRetry
from bot.engine.worker.tasks import SUSPECT_WAITS, Attempt, JobOutcome, Tasks
from bot.github.errors import kind_of
from tests.engine.toy import Toy, World

AFTER_AN_OUTAGE = Tries(away=3, away_since=1_700_000_000.0)
POSTPONE = "UPDATE procrastinate_jobs SET scheduled_at = now() WHERE id = %(id)s"
BEGIN = "UPDATE procrastinate_jobs SET status = 'doing', worker_id = %(worker)s WHERE id = %(id)s"
STATUS = "SELECT status FROM procrastinate_jobs WHERE id = %(id)s"
REFUSE = """
CREATE TRIGGER refuse BEFORE UPDATE OF scheduled_at ON procrastinate_jobs WHEN NEW.scheduled_at IS NULL
BEGIN SELECT RAISE(ABORT, 'the disk is full'); END
"""

REFUSE_NOTES = """
CREATE TRIGGER refuse_notes BEFORE INSERT ON nightjar_notes BEGIN SELECT RAISE(ABORT, 'not this one'); END
"""


@pytest.fixture
async def connector(sqlite_url: str) -> AsyncIterator[Connector]:
    """Return an open database in which no job that waits for an answer can be released."""
    database = Database(sqlite_url)
    await database.open()
    await database.connector.execute_query_async(REFUSE)
    yield database.connector
    await database.close()


async def waiting(connector: Connector, *keys: str) -> list[int]:
    """Store jobs that wait for an answer but cannot be released, and return their IDs."""
    jobs = await defer_once(connector, [NewJob(key=key, task="effect", args={}) for key in keys])
    for job in jobs:
        await write_note(connector, job.job_id, Note(outcome=AWAY, tries=AFTER_AN_OUTAGE))
        await connector.execute_query_async(POSTPONE, id=job.job_id)
    return [job.job_id for job in jobs]


class Ending:
    """Ends jobs as a worker does, without waiting for a database that is down."""

    def __init__(self, connector: Connector, guard: Guard | None = None) -> None:
        self.guard = guard or Guard()
        self.given_up = 0
        self._connector = connector
        self._manager = EngineJobManager(connector, self.guard, self._give_up, patience=0.0)

    def _give_up(self) -> None:
        self.given_up += 1

    async def begun(self, job_id: int) -> int:
        """Give a job to a new worker; return the worker."""
        worker = await self._manager.register_worker()
        await self._connector.execute_query_async(BEGIN, id=job_id, worker=worker)
        return worker

    async def run(
        self, worker: int, job_id: int, end: JobOutcome | BaseException, attempts: int = 3
    ) -> BaseException | None:
        """Try a job with this end, and store it; return the exception that the try raised."""
        job_try = attempt(job_id, end, guard=self.guard, attempts=attempts, worker=worker)
        raised: BaseException | None = None
        try:
            await job_try.run(self._connector)
        except (Exception, asyncio.CancelledError) as error:  # its outcome decides how the job ends
            raised = error
        decision = EngineRetry().get_retry_decision(exception=raised, job=job_try.job) if raised else None
        if decision:
            await self._manager.retry_job(job_try.job, decision.retry_at, decision.priority)
        else:
            await self._manager.finish_job(job_try.job, Status.FAILED if raised else Status.SUCCEEDED, delete_job=False)
        return raised


def attempt(
    job_id: int,
    end: JobOutcome | BaseException,
    *,
    guard: Guard | None = None,
    attempts: int = 3,
    worker: int | None = None,
) -> Attempt:
    """Return the next try of a job that, by default, has waited for an answer and now has it."""

    async def work() -> JobOutcome:
        if isinstance(end, BaseException):
            raise end
        return end

    job = QuietJob(
        id=job_id,
        status="doing",
        queue="q",
        lock=None,
        queueing_lock=None,
        task_name="effect",
        attempts=attempts,
        worker_id=worker,
    )
    seen: dict[str, Any] = {"watch": lambda *_: None, "message": str, "kind_of": kind_of, "labels": {}}
    return Attempt(job=job, work=work, guard=guard or Guard(), **seen)


async def status_of(connector: Connector, job_id: int) -> object:
    (row,) = await connector.execute_query_all_async(STATUS, id=job_id)
    return row["status"]


@contextmanager
def outage(url: str) -> Iterator[None]:
    """Keep everybody from reading or writing the database."""
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"), isolation_level=None)) as holder:
        holder.execute("BEGIN EXCLUSIVE")
        yield


async def test_an_applied_effect_is_stored_as_ended_even_if_waiting_jobs_cannot_be_released(
    connector: Connector,
) -> None:
    job, _ = await waiting(connector, "a", "b")
    ending = Ending(connector)
    assert await ending.run(await ending.begun(job), job, JobOutcome(APPLIED, "written")) is None
    assert await read_note(connector, job) == Note(outcome=APPLIED, text="written", tries=AFTER_AN_OUTAGE)
    assert await status_of(connector, job) == "succeeded"


async def test_a_failed_try_is_counted_even_if_waiting_jobs_cannot_be_released(
    connector: Connector,
) -> None:
    job, _ = await waiting(connector, "a", "b")
    ending = Ending(connector)
    assert isinstance(await ending.run(await ending.begun(job), job, TryAgain("answered, but not yet")), RunAgain)
    note = await read_note(connector, job)
    assert (note.outcome, note.tries) == (RETRYING, replace(AFTER_AN_OUTAGE, away_since=0.0, backed_off=1))
    assert await status_of(connector, job) == "todo"


@pytest.fixture
async def unwaiting(sqlite_url: str) -> AsyncIterator[SqliteConnector | PostgresConnector]:
    """Return an open database that does not wait for a lock."""
    database = Database(sqlite_url)
    await database.open()
    await database.connector.execute_query_async("PRAGMA busy_timeout = 0")
    yield database.connector
    await database.close()


@pytest.mark.parametrize(
    "end", [JobOutcome(APPLIED, "written"), TryAgain("not yet"), RunAgain(1.0, None), asyncio.CancelledError()]
)
@pytest.mark.parametrize("attempts", [0, 1])
async def test_a_try_whose_end_could_not_be_stored_in_an_outage_does_not_count_as_a_crash(
    unwaiting: Connector, sqlite_url: str, end: JobOutcome | BaseException, attempts: int
) -> None:
    (job,) = await defer_once(unwaiting, [NewJob(key="a", task="effect", args={})])
    ending, first_tries = Ending(unwaiting), Tries(stopped=attempts, alone=MAX_ALONE - 1)
    await write_note(unwaiting, job.job_id, Note(outcome=RETRYING, tries=first_tries))
    worker = await ending.begun(job.job_id)
    for outages in range(3):
        with outage(sqlite_url):
            await ending.run(worker, job.job_id, end, attempts + outages)
        assert ending.given_up == outages + 1
    await ending.run(worker, job.job_id, JobOutcome(APPLIED, "at last"), attempts + 3)
    tries = (await read_note(unwaiting, job.job_id)).tries
    assert tries == Tries(stopped=attempts + 3)
    assert tries.lost(attempts + 3) == 0


@pytest.mark.parametrize("is_stopping", [False, True])
async def test_a_try_that_a_young_or_stopping_process_postpones_keeps_the_count_of_crashes(
    connector: Connector, *, is_stopping: bool
) -> None:
    (job,) = await defer_once(connector, [NewJob(key="a", task="effect", args={})])
    ending = Ending(connector, Guard(min_age=0.0 if is_stopping else 3600.0))
    if is_stopping:
        ending.guard.stop()
    suspect = Tries(backed_off=1, alone=MAX_ALONE - 1)
    await write_note(connector, job.job_id, Note(outcome=RETRYING, text="502", tries=suspect))
    worker, attempts = await ending.begun(job.job_id), suspect.backed_off + SUSPECT_AFTER
    raised = await ending.run(worker, job.job_id, JobOutcome(APPLIED, "too early"), attempts)
    assert isinstance(raised, Postponed)
    note = await read_note(connector, job.job_id)
    assert (note.outcome, note.text, note.tries) == (RETRYING, SUSPECT_WAITS, replace(suspect, stopped=1))
    assert note.tries.lost(attempts + 1) == SUSPECT_AFTER
    assert await status_of(connector, job.job_id) == "todo"


async def test_an_effect_whose_writes_could_not_be_read_in_an_outage_does_not_count_as_a_crash(
    unwaiting: SqliteConnector | PostgresConnector, sqlite_url: str, world: World
) -> None:
    guard = Guard()
    new_changes, deliveries = Engine(sqlite_url).new_changes, RecentDeliveries()
    tasks = Tasks(Store(unwaiting), Toy(world), NobodyWatches(), guard, new_changes, deliveries)
    job = attempt(7, JobOutcome(APPLIED, "")).job
    context = JobContext(app=App(connector=unwaiting), job=job, start_timestamp=0.0, abort_reason=lambda: None)
    origin = Origin("g", "a", "i", delivery_job=1, received_at=0.0, replay=0, lock=None)
    with outage(sqlite_url), pytest.raises(DatabaseFailure):
        await tasks.effect(context, **origin.args, effect={"kind": "Write"}, target="x")
    assert guard.outlived(7) == 1


async def test_an_error_without_an_outage_still_counts_as_a_crash(connector: Connector) -> None:
    """A note that can never be stored must quarantine its own job in the end, and stop no other."""
    await connector.execute_query_async(REFUSE_NOTES)
    (job,) = await defer_once(connector, [NewJob(key="a", task="effect", args={})])
    ending = Ending(connector)
    await ending.run(await ending.begun(job.job_id), job.job_id, JobOutcome(APPLIED, "written"), attempts=0)
    assert await status_of(connector, job.job_id) == "todo"
    assert (ending.guard.outlived(job.job_id), ending.given_up) == (0, 0)


async def test_a_worker_that_lost_a_job_changes_neither_the_job_nor_its_note(database: Database) -> None:
    connector = database.connector
    (job,) = await defer_once(connector, [NewJob(key="a", task="effect", args={})])
    ending = Ending(connector)
    frozen, holder = await ending.begun(job.job_id), await ending.begun(job.job_id)
    for late in (JobOutcome(APPLIED, "too late"), TryAgain("too late")):
        await ending.run(frozen, job.job_id, late, attempts=0)
        assert await read_note(connector, job.job_id) == Note()
        assert await status_of(connector, job.job_id) == "doing"
    await ending.run(holder, job.job_id, JobOutcome(APPLIED, "in time"), attempts=0)
    assert (await read_note(connector, job.job_id)).text == "in time"
    assert await status_of(connector, job.job_id) == "succeeded"
