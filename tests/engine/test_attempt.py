"""How a try ends is stored, whatever else fails at that moment."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from procrastinate.connector import BaseAsyncConnector
from procrastinate.jobs import Job

from bot.core.errors import TryAgain
from bot.engine.attempt import Attempt, Outcome
from bot.engine.database import Database
from bot.engine.guard import Guard
from bot.engine.notes import APPLIED, AWAY, RETRYING, Note, read_note, write_note
from bot.engine.once import NewJob, defer_once
from bot.engine.retry import Again, Tries
from bot.github.errors import kind_of

AFTER_AN_OUTAGE = Tries(away=3, away_since=1_700_000_000.0)
POSTPONE = "UPDATE procrastinate_jobs SET scheduled_at = now() WHERE id = %(id)s"
REFUSE = """
CREATE TRIGGER refuse BEFORE UPDATE OF scheduled_at ON procrastinate_jobs WHEN NEW.scheduled_at IS NULL
BEGIN SELECT RAISE(ABORT, 'the disk is full'); END
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


def attempt(job_id: int, end: Outcome | Exception) -> Attempt:
    """Return the next try of such a job, which has its answer now."""

    async def work() -> Outcome:
        if isinstance(end, Exception):
            raise end
        return end

    job = Job(id=job_id, status="doing", queue="q", lock=None, queueing_lock=None, task_name="effect", attempts=3)
    seen: dict[str, Any] = {"watch": lambda *_: None, "told": str, "kind_of": kind_of, "labels": {}}
    return Attempt(job=job, work=work, guard=Guard(), **seen)


async def test_an_applied_effect_has_ended_even_if_the_jobs_that_wait_cannot_be_released(
    connector: BaseAsyncConnector,
) -> None:
    job, _ = await waiting(connector, "a", "b")
    await attempt(job, Outcome(APPLIED, "written")).run(connector)
    assert await read_note(connector, job) == Note(outcome=APPLIED, text="written", tries=AFTER_AN_OUTAGE)


async def test_a_try_that_failed_is_counted_even_if_the_jobs_that_wait_cannot_be_released(
    connector: BaseAsyncConnector,
) -> None:
    job, _ = await waiting(connector, "a", "b")
    with pytest.raises(Again):
        await attempt(job, TryAgain("answered, but not yet")).run(connector)
    note = await read_note(connector, job)
    assert (note.outcome, note.tries) == (RETRYING, replace(AFTER_AN_OUTAGE, away_since=0.0, backed_off=1))
