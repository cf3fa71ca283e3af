"""Fail a job whose stored form cannot be read, and log why: otherwise the jobs under its lock would wait for ever.

The job is damaged, or another version wrote it. Its note stays unchanged, because it may list sent writes. The job runs
again after a quiet hour, when a version that can read it may be running.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import structlog
from procrastinate import JobContext
from procrastinate.jobs import Job

from bot.engine.jobs import definitions
from bot.engine.jobs.notes import FAILED, UnreadableNote, read_note
from bot.engine.processor import JobObserver
from bot.engine.retry import Failed, RunAgain
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sql.transactions import Connector
from bot.engine.worker.attempt import describe, id_of
from bot.engine.worker.manager import leave_note
from bot.engine.worker.repeat import resume_later

UNREADABLE = "the stored form of a job cannot be read"
UNREADABLE_JOB = "its stored arguments cannot be read: {error}"

Task = Callable[..., Awaitable[None]]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def fail_unreadable(name: str, task: Task, connector: Connector, observer: JobObserver) -> Task:
    """Wrap a task so that the job fails if reading it raises; `Attempt` handles the errors of its work."""

    async def run(context: JobContext, **args: Any) -> None:
        try:
            await task(context, **args)
        except (RunAgain, Failed, DatabaseFailure):
            raise
        except Exception as error:
            # A note that cannot be read names the reason; anything else needs the traceback.
            trace = None if isinstance(error, UnreadableNote) else error
            labels = {"job": context.job.id, "task": name, "delivery": args.get("guid")}
            log.error(UNREADABLE, error=describe(error), exc_info=trace, **labels)  # noqa: TRY400
            _count(observer, name, args)
            await _note_reason(connector, context.job, error)
            await resume_later(connector, context.job)
            raise Failed from error

    return run


def _count(observer: JobObserver, task: str, args: Mapping[str, Any]) -> None:
    """Report the failure to the observer, as `Attempt` would."""
    match task:
        case definitions.HANDLE | definitions.CONCLUDE:
            observer.handler(str(args.get("handler", "")), FAILED, 0.0)
        case definitions.EFFECT:
            effect = args.get("effect")
            observer.effect(str(effect.get("kind", "")) if isinstance(effect, dict) else "", FAILED, 0.0)
        case definitions.DELIVER:
            observer.delivery(str(args.get("event", "")), FAILED, 0.0)


async def _note_reason(connector: Connector, job: Job, error: Exception) -> None:
    """Leave the reason in the job's note, unless the note itself cannot be read: `Note.shown` then says so."""
    try:
        note = await read_note(connector, id_of(job))
    except UnreadableNote:
        return
    text = UNREADABLE_JOB.format(error=describe(error))
    leave_note(job, note.failed(text))
