"""One try of a job: run it, and leave a note with the job, to be stored when the job ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import structlog
from procrastinate.connector import BaseAsyncConnector
from procrastinate.jobs import Job

from bot.core.errors import GiveWay, PayloadError, Refusal, UserError
from bot.engine.jobs.definitions import GIVE_WAY_PRIORITY
from bot.engine.jobs.notes import AWAY, FAILED, REFUSED, RETRYING, Note, UnreadableNote, read_note, write_note
from bot.engine.outage import release_waiting
from bot.engine.processor import ErrorKind
from bot.engine.retry import (
    FIRST_WAIT,
    MAX_ALONE,
    SUSPECT_AFTER,
    SUSPECT_PAUSE,
    Again,
    Failed,
    LostTooOften,
    Postponed,
    Tries,
    is_away,
    next_try,
)
from bot.engine.worker.guard import Busy, Guard, Stopping
from bot.engine.worker.manager import leave_note
from bot.engine.worker.repeat import resume_later
from bot.engine.writes import Writes

SUSPECT = "it was running when processes ended, so it now runs alone"
SUSPECT_WAITS = f"{SUSPECT}, once its process has run for a while without it"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The outcome of a job that did not fail; `about` is stored in its note with the text."""

    outcome: str
    text: str
    about: Mapping[str, Any] = field(default_factory=dict)
    value: Any = None
    """What an effect returned for the conclude stage, as JSON."""


async def _no_answer(_: str, __: bool) -> None:
    """Do nothing: most failures are for operators only."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a job.

    `work` does the job, under the `guard` of its process; `watch` gets the outcome and how many seconds it took.
    `message` words an error for people. `answer` gets that text if the error ends the job, and whether the engine runs
    the job again by itself after a quiet hour. `retry_priority` is the
    job's priority while it waits for its next try.
    """

    job: Job
    work: Callable[[], Awaitable[JobOutcome]]
    guard: Guard
    watch: Callable[[str, float], None]
    message: Callable[[Exception], str]
    kind_of: Callable[[BaseException], ErrorKind]
    labels: Mapping[str, str | int]
    retry_priority: int | None = None
    writes: Writes = field(default_factory=Writes)
    """What the job has sent that must not be sent twice: the next try reads this."""
    answer: Callable[[str, bool], Awaitable[None]] = _no_answer
    first_wait: float = FIRST_WAIT

    async def run(self, connector: BaseAsyncConnector) -> None:
        """Try once. Raises `Again` or `Failed`, which `bot.engine.retry.EngineRetry` understands.

        The note of how the try ended is left with the job. Raises ConnectorException if the database fails before.
        """
        job_id = id_of(self.job)
        with structlog.contextvars.bound_contextvars(job=job_id, **self.labels), self.guard.outliving(job_id):
            await self._run(connector, job_id)

    async def _run(self, connector: BaseAsyncConnector, job_id: int) -> None:
        began = time.monotonic()
        # The first try has no note, which saves a query for most jobs.
        try:
            before = await read_note(connector, job_id) if self.job.attempts else Note()
        except UnreadableNote as error:
            # `bot.engine.worker.unreadable` ends the job, and leaves the note: another version may read it.
            await self.answer(self.message(error), True)
            raise
        tries = before.tries.after_outlived(self.guard.outlived(job_id))
        try:
            done = await self._guarded(connector, tries)
        except Postponed as postponed:
            # It waits, for longer than a moment, so its note says for what.
            waiting = replace(before, outcome=RETRYING, text=SUSPECT_WAITS, tries=tries.after(postponed, time.time()))
            leave_note(self.job, replace(waiting, writes=self.writes.state))
            raise
        except (Again, asyncio.CancelledError) as ended:
            # It ended on purpose, and must not look like a try that ended with its process.
            stopped = replace(before, tries=tries.after(ended, time.time()), writes=self.writes.state)
            leave_note(self.job, stopped)
            raise
        except Exception as error:
            outcome = await self._settle(connector, error, tries, began)
            if outcome is None:
                return
            raise outcome from error
        if tries.away_since:
            await release_waiting(connector)
        note = Note(outcome=done.outcome, text=done.text, tries=tries, about=done.about, value=done.value)
        leave_note(self.job, note)
        line = f"{self.job.task_name}: {done.outcome}"
        log.info(line, text=done.text)
        self.watch(done.outcome, time.monotonic() - began)

    async def _note(self, connector: BaseAsyncConnector, note: Note) -> None:
        """Store a note that covers all tries so far, before this one goes on."""
        job_id = id_of(self.job)
        await write_note(connector, job_id, note)
        self.guard.forget(job_id)

    async def _guarded(self, connector: BaseAsyncConnector, tries: Tries) -> JobOutcome:
        """Do the work beside other jobs; alone if it may be what ends processes."""
        if tries.alone >= MAX_ALONE:
            raise LostTooOften(tries.alone, again=await resume_later(connector, self.job))
        lost = tries.lost(self.job.attempts)
        if lost < SUSPECT_AFTER:
            return await self.guard.run(self.work)
        if seconds := self.guard.too_young(tries.alone):
            raise Postponed(seconds, self.retry_priority)

        async def alone() -> JobOutcome:
            # The note is stored before the work, which may end this process: otherwise the next process would not know
            # that the job ran alone.
            log.warning(SUSPECT, ended=lost)
            begun = replace(tries, alone=tries.alone + 1)
            note = Note(outcome=RETRYING, text=SUSPECT, tries=begun, writes=self.writes.state)
            await self._note(connector, note)
            return await self.work()

        try:
            return await self.guard.run_alone(alone)
        # Not a failed try: it is not this job's fault if others take long.
        except Busy:
            raise Postponed(SUSPECT_PAUSE, self.retry_priority) from None
        except Stopping:
            raise Postponed(0.0, self.retry_priority) from None

    async def _settle(
        self, connector: BaseAsyncConnector, error: Exception, tries: Tries, began: float
    ) -> Again | Failed | None:
        """Note how the try ended; return the error to raise, None if the job ends with a refusal."""
        now = time.time()
        seconds = next_try(error, tries, now, self.first_wait, self.kind_of(error))
        message = self.message(error)
        after = tries.after(error, now)
        outcome = RETRYING if seconds is not None else _final(error)
        if seconds is None:
            await self.answer(message, isinstance(error, LostTooOften) and error.again)
        shown = AWAY if seconds is not None and is_away(error) else outcome
        note = Note(
            outcome=shown,
            text=describe(error),
            message=message,
            tries=after,
            writes=self.writes.state,
            is_user_error=isinstance(error, UserError),
        )
        # Any other error shows that the service answers again, so jobs that wait for it may run at once.
        if tries.away_since and not after.away_since:
            await release_waiting(connector)
        leave_note(self.job, note)
        self._log(error, seconds)
        self.watch(outcome, time.monotonic() - began)
        if seconds is not None:
            return Again(seconds, GIVE_WAY_PRIORITY if isinstance(error, GiveWay) else self.retry_priority)
        # A refusal is no failure: the job ends as succeeded, and its note says what was refused.
        return None if outcome == REFUSED else Failed()

    def _log(self, error: Exception, seconds: float | None) -> None:
        line = f"{self.job.task_name}: {_final(error) if seconds is None else RETRYING}"
        more: dict[str, Any] = {"error": describe(error)}
        if seconds is not None:
            log.warning(line, retry_in=round(seconds, 1), **more)
        elif isinstance(error, Refusal | UserError):
            log.info(line, **more)
        elif isinstance(error, PayloadError):
            log.error(line, path=error.path, **more)
        elif self.kind_of(error) is not ErrorKind.OTHER:
            log.error(line, **more)
        else:
            # Most likely a fault of ours, so the log needs the traceback.
            log.error(line, exc_info=error, **more)


def _final(error: Exception) -> str:
    return REFUSED if isinstance(error, Refusal) else FAILED


def describe(error: Exception) -> str:
    """Put an error into words for operators."""
    text = str(error)
    if isinstance(error, UserError | PayloadError | Refusal):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def id_of(job: Job) -> int:
    """Return the id of a job that is stored."""
    if job.id is None:
        raise ValueError(f"{job.task_name}: a job that was never stored cannot run")
    return job.id
