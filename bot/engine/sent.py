"""The writes that an effect's job has sent, over all its tries and workers: stored with the job's note."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

from procrastinate.connector import BaseAsyncConnector
from procrastinate.jobs import Job

from bot.engine.attempt import JobOutcome, id_of
from bot.engine.notes import WRITING, Note, read_note, write_note
from bot.engine.processor import ErrorKind
from bot.engine.retry import is_final
from bot.engine.writes import CheckAgain, Writes


async def writes_of(connector: BaseAsyncConnector, job: Job, check_after: float) -> Writes:
    """Return what earlier tries of a job have sent. What this try sends is stored before it is sent."""
    job_id = id_of(job)
    note = await read_note(connector, job_id) if job.attempts else Note()

    async def save(state: Mapping[str, Any]) -> None:
        # Read again, because this try may have noted that it runs alone. A first try has noted nothing else.
        now = await read_note(connector, job_id) if job.attempts else note
        await write_note(connector, job_id, replace(now, outcome=WRITING, writes=state))

    return Writes(note.writes, save, check_after)


async def apply_and_heal(
    writes: Writes, apply: Callable[[], Awaitable[JobOutcome]], kind_of: Callable[[BaseException], ErrorKind]
) -> JobOutcome:
    """Apply an effect. Where a write had to be sent again, come back until twins of it would have been found.

    Raises `CheckAgain` to come back, and what `apply` raises.
    """
    outcome = JobOutcome(**writes.outcome) if writes.outcome else None
    try:
        applied = await apply()
    except CheckAgain:
        # It was applied before. That it wanted to write now, which it may not while it looks for twins, is no failure.
        if outcome is None:
            raise
    except Exception as error:
        # It was applied before: that it cannot be applied once more is no failure.
        if outcome is None or not is_final(error, kind_of(error)):
            raise
    else:
        outcome = outcome or applied
    if outcome is None:
        raise AssertionError("an effect that was not applied raises")
    if again := writes.check_for_twins(asdict(outcome)):
        raise again
    return outcome
