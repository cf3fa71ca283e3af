"""One try of a job: run its work, and leave a note that is stored when the job ends."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import structlog
from procrastinate.jobs import Job, Status

from bot.core.errors import GiveWay, PayloadError, Refusal, UserError
from bot.engine.changes import Changes, Outdated
from bot.engine.jobs.definitions import GIVE_WAY_PRIORITY
from bot.engine.jobs.notes import (
    AWAY,
    FAILED,
    REFUSED,
    RETRYING,
    Note,
    StoredPart,
    UnreadableNote,
    read_note,
    write_note,
)
from bot.engine.jobs.once import Deferred, NewJob, insert_once
from bot.engine.jobs.steps import FINISH_NOTED
from bot.engine.jobs.store import become_plan, insert_again
from bot.engine.outage import release_waiting
from bot.engine.processor import ErrorKind
from bot.engine.retry import (
    FIRST_WAIT,
    MAX_ALONE,
    SUSPECT_AFTER,
    SUSPECT_PAUSE,
    Failed,
    LostTooOften,
    Postponed,
    RunAgain,
    Tries,
    is_away,
    next_try,
)
from bot.engine.sql.portable import Row
from bot.engine.sql.transactions import Connector, Steps
from bot.engine.worker.guard import Busy, Guard, Stopping
from bot.engine.worker.manager import TAKEN_OVER, leave_ended, leave_note, values_of_next
from bot.engine.worker.repeat import resume_later
from bot.engine.writes import Writes

NO_NEXT: Row = {"id": None}
MAX_PLANS = 5
"""How often the work of one try is done again because another job changed the records that it has read."""

SUSPECT = "it may have crashed the worker, so it runs alone"
SUSPECT_WAITS = f"{SUSPECT}, once its process has run for a while without it"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class JobOutcome:
    """The outcome of a job that did not fail; `text` and `about` are stored in its note."""

    outcome: str
    text: str
    about: Mapping[str, Any] = field(default_factory=dict)
    value: Any = None
    """The value of an effect for the conclude stage, as JSON."""
    stored: tuple[StoredPart, ...] = ()
    """The effects of a plan that are stored together with it."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What follows from a job, stored in the transaction that ends the job: new `jobs`, and `changes`.

    `outcome` gets the job of each key. With `again`, existing jobs that have failed are requeued.
    """

    outcome: Callable[[Sequence[Deferred]], JobOutcome]
    jobs: Sequence[NewJob] = ()
    changes: Changes | None = None
    again: bool = False
    plan: tuple[NewJob, JobOutcome] | None = None
    """The job of a plan that the job becomes. If another job has that plan, nothing but this outcome follows."""


class TakenOver(Exception):
    """Another worker took the job over, so nothing that follows from this try was stored."""


async def _no_answer(_: str, __: bool) -> None:
    """Do nothing: most failures are for operators only."""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try of a job.

    `work` does the job, under the `guard` of its process. `watch` gets the outcome and the seconds that the try took.
    `message` turns an error into a text for people. `answer` gets that text if the error ends the job, and whether the
    engine runs the job again by itself after a quiet hour. `retry_priority` is the priority of the job while it waits
    for its next try.
    """

    job: Job
    work: Callable[[], Awaitable[JobOutcome | FollowUp]]
    guard: Guard
    watch: Callable[[str, float], None]
    message: Callable[[Exception], str]
    kind_of: Callable[[BaseException], ErrorKind]
    labels: Mapping[str, str | int]
    retry_priority: int | None = None
    writes: Writes = field(default_factory=Writes)
    """The writes that the job has sent and must not send twice; the next try reads them."""
    answer: Callable[[str, bool], Awaitable[None]] = _no_answer
    first_wait: float = FIRST_WAIT

    async def run(self, connector: Connector) -> None:
        """Try once. Raises `RunAgain` or `Failed`, which `bot.engine.worker.queue.EngineRetry` understands.

        Leaves the note of the outcome with the job. Raises DatabaseFailure if the database fails first.
        """
        job_id = id_of(self.job)
        with structlog.contextvars.bound_contextvars(job=job_id, **self.labels), self.guard.outliving(job_id):
            await self._run(connector, job_id)

    async def _run(self, connector: Connector, job_id: int) -> None:
        began = time.monotonic()
        # The first try has no note, which saves a query for most jobs.
        try:
            earlier_note = await read_note(connector, job_id) if self.job.attempts else Note()
        except UnreadableNote as error:
            # `bot.engine.worker.unreadable` ends the job, and leaves the note: another version may read it.
            await self.answer(self.message(error), True)
            raise
        tries = earlier_note.tries.after_outlived(self.guard.outlived(job_id))
        try:
            result = await self._guarded(connector, tries)
        except Postponed as postponed:
            # It may wait for long, so its note says why.
            counted = tries.after(postponed, time.time())
            waiting = replace(earlier_note, outcome=RETRYING, text=SUSPECT_WAITS, tries=counted)
            leave_note(self.job, replace(waiting, writes=self.writes.state))
            raise
        except (RunAgain, asyncio.CancelledError) as ended:
            # It stopped on purpose, and must not look like a crash of its process.
            stopped = replace(earlier_note, tries=tries.after(ended, time.time()), writes=self.writes.state)
            leave_note(self.job, stopped)
            raise
        except TakenOver:
            leave_ended(self.job, NO_NEXT)
            log.warning(TAKEN_OVER)
            return
        except Exception as error:
            decision = await self._settle(connector, error, tries, began)
            if decision is None:
                return
            raise decision from error
        if tries.away_since:
            await release_waiting(connector)
        leave_note(self.job, _note_of(result, tries))
        line = f"{self.job.task_name}: {result.outcome}"
        log.info(line, text=result.text)
        self.watch(result.outcome, time.monotonic() - began)

    async def _note(self, connector: Connector, note: Note) -> None:
        """Store a note that covers all tries so far, before this one goes on."""
        job_id = id_of(self.job)
        await write_note(connector, job_id, note)
        self.guard.forget(job_id)

    async def _guarded(self, connector: Connector, tries: Tries) -> JobOutcome:
        """Do the work beside other jobs; in isolation if it may crash the process."""
        if tries.alone >= MAX_ALONE:
            raise LostTooOften(tries.alone, runs_again=await resume_later(connector, self.job))
        lost = tries.lost(self.job.attempts)

        async def work() -> JobOutcome:
            return await self._work_and_end(connector, tries)

        if lost < SUSPECT_AFTER:
            return await self.guard.run(work)
        if seconds := self.guard.too_young(tries.alone):
            raise Postponed(seconds, self.retry_priority)

        async def alone() -> JobOutcome:
            # The work may end this process. The note, stored first, tells the next process that the job ran alone.
            log.warning(SUSPECT, ended=lost)
            begun = replace(tries, alone=tries.alone + 1)
            note = Note(outcome=RETRYING, text=SUSPECT, tries=begun, writes=self.writes.state)
            await self._note(connector, note)
            return await work()

        try:
            return await self.guard.run_alone(alone)
        # Not a failed try: other jobs caused the delay.
        except Busy:
            raise Postponed(SUSPECT_PAUSE, self.retry_priority) from None
        except Stopping:
            raise Postponed(0.0, self.retry_priority) from None

    async def _work_and_end(self, connector: Connector, tries: Tries) -> JobOutcome:
        """Do the work, and end the job together with what follows from it, if anything does."""
        for _ in range(MAX_PLANS):
            result = await self.work()
            if isinstance(result, JobOutcome):
                return result
            try:
                outcome, next_row = await connector.transact(partial(self._steps, result, tries))
            except Outdated as error:
                # The records that the work has read were changed meanwhile, so it must be done again.
                outdated = error
                continue
            leave_ended(self.job, next_row)
            self.guard.forget(id_of(self.job))
            if result.changes is not None:
                result.changes.committed()
            return outcome
        raise outdated

    def _steps(self, follow_up: FollowUp, tries: Tries) -> Steps[tuple[JobOutcome, Row]]:
        deferred: list[Deferred] = []
        if follow_up.plan is not None:
            plan, handled_before = follow_up.plan
            if not (yield become_plan(id_of(self.job), plan)):
                follow_up = FollowUp(lambda _: handled_before)
        if follow_up.jobs:
            deferred = yield from (insert_again if follow_up.again else insert_once)(follow_up.jobs)
        if follow_up.changes is not None:
            yield from follow_up.changes.steps()
        outcome = follow_up.outcome(deferred)
        note = _note_of(outcome, tries)
        values = {"id": id_of(self.job), "worker_id": self.job.worker_id, "status": Status.SUCCEEDED.value}
        values |= {"outcome": note.outcome, "note": note.written()}
        has_deliveries = follow_up.changes is not None and follow_up.changes.has_deliveries
        rows = yield FINISH_NOTED, {**values, **values_of_next(self.job, frees_others=has_deliveries)}
        if not rows:
            raise TakenOver
        return outcome, rows[0]

    async def _settle(
        self, connector: Connector, error: Exception, tries: Tries, began: float
    ) -> RunAgain | Failed | None:
        """Leave the note of a failed try; return the error to raise, None if the job ends with a refusal."""
        moment = time.time()
        seconds = next_try(error, tries, moment, self.first_wait, self.kind_of(error))
        message = self.message(error)
        counted = tries.after(error, moment)
        outcome = RETRYING if seconds is not None else _final(error)
        if seconds is None:
            await self.answer(message, isinstance(error, LostTooOften) and error.runs_again)
        noted_outcome = AWAY if seconds is not None and is_away(error) else outcome
        note = Note(
            outcome=noted_outcome,
            text=describe(error),
            message=message,
            tries=counted,
            writes=self.writes.state,
            is_user_error=isinstance(error, UserError),
        )
        # Any other error shows that the service answers again, so the jobs that wait for it may run now.
        if tries.away_since and not counted.away_since:
            await release_waiting(connector)
        leave_note(self.job, note)
        self._log(error, seconds)
        self.watch(outcome, time.monotonic() - began)
        if seconds is not None:
            return RunAgain(seconds, GIVE_WAY_PRIORITY if isinstance(error, GiveWay) else self.retry_priority)
        # A refusal is not a failure: the job ends as succeeded, and its note says what was refused.
        return None if outcome == REFUSED else Failed()

    def _log(self, error: Exception, seconds: float | None) -> None:
        line = f"{self.job.task_name}: {_final(error) if seconds is None else RETRYING}"
        fields: dict[str, Any] = {"error": describe(error)}
        if seconds is not None:
            log.warning(line, retry_in=round(seconds, 1), **fields)
        elif isinstance(error, Refusal | UserError):
            log.info(line, **fields)
        elif isinstance(error, PayloadError):
            log.error(line, path=error.path, **fields)
        elif self.kind_of(error) is not ErrorKind.OTHER:
            log.error(line, **fields)
        else:
            # Most likely a bug of ours, so the log needs the traceback.
            log.error(line, exc_info=error, **fields)


def _note_of(result: JobOutcome, tries: Tries) -> Note:
    return Note(
        outcome=result.outcome,
        text=result.text,
        tries=tries,
        about=result.about,
        value=result.value,
        stored=result.stored,
    )


def _final(error: Exception) -> str:
    return REFUSED if isinstance(error, Refusal) else FAILED


def describe(error: Exception) -> str:
    """Return the text of an error for operators."""
    text = str(error)
    if isinstance(error, UserError | PayloadError | Refusal):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def id_of(job: Job) -> int:
    """Return the id of a job that is stored."""
    if job.id is None:
        raise ValueError(f"{job.task_name}: a job that was never stored cannot run")
    return job.id
