"""Override seven behaviors of Procrastinate's job manager.

- The log shows only the name and ID of a job: its arguments hold whole webhook bodies.
- One fetch returns as many jobs as the worker can begin: with one job per commit, the disk would limit the rate.
- While no job waits, the worker polls less often.
- One statement ends a job and stores the note of its outcome, so no crash falls between them.
- The same statement begins the next job of a plan, so that the worker does not have to fetch it.
- The manager retries to store the end of a job while the database is unavailable. Its worker is alive, so otherwise the
  job would stay `doing` for ever and block all jobs under its lock.
- Only the worker that holds a job may end it: while a worker was frozen, others may have taken its job over.
"""

from __future__ import annotations

import asyncio
import contextlib
import datetime
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, LiteralString, cast

import attr
import structlog
from procrastinate import jobs as procrastinate_jobs
from procrastinate.connector import BaseAsyncConnector
from procrastinate.manager import JobManager

from bot.engine.jobs.notes import Note
from bot.engine.jobs.steps import (
    FETCH,
    FINISH,
    FINISH_NOTED,
    NEXT_SCHEDULED,
    NOTIFICATIONS,
    PARK,
    RETRY,
    RETRY_NOTED,
    RETURN_UNBEGUN,
    RETURN_UNKNOWN,
    SCANNED,
    WINDOW,
)
from bot.engine.outage import is_outage
from bot.engine.records import JobRecords
from bot.engine.retry import unnoted_wait
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sql.portable import Row
from bot.engine.sql.transactions import Connector
from bot.engine.worker.guard import Guard
from bot.engine.worker.intake import Intake

WRITE_PATIENCE = 12.0
"""Seconds for which to retry storing the end of a job: less than `WorkerPace.stalled`, when others take it over."""

WRITE_PAUSE = 0.3

MOST_WAITING = 100
"""Waiting jobs among which the next scheduled one is searched; with more, the worker polls as often as it may."""

NOT_FETCHED = "job {job}: only jobs that the engine's worker fetched can run"
NOT_ENDED = "could not store the outcome of a job"
NOT_NOTED = "could not store the progress of a job, so the job runs again"
TAKEN_OVER = "a job was taken over by another worker before it ended here"
ENDED_OR_TAKEN_OVER = "a job had ended, but the answer was lost; or it was taken over by another worker"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class NoteHolder:
    """Holds the note of a job's try until the job ends, what the job reads first, and the manager that fetched the job.

    `has_ended`: its end is stored already. `may_have_ended`: a statement was sent that ends it and begins the next job.
    """

    __slots__ = ("has_ended", "manager", "may_have_ended", "note", "records")

    def __init__(self) -> None:
        self.note: Note | None = None
        self.has_ended = self.may_have_ended = False
        self.manager: EngineJobManager | None = None
        self.records = JobRecords()


@attr.dataclass(frozen=True, kw_only=True)
class QuietJob(procrastinate_jobs.Job):
    """A job whose arguments never reach a log, and which holds the note of its try."""

    holder: NoteHolder = attr.field(factory=NoteHolder, repr=False, eq=False)

    @property
    def call_string(self) -> str:
        """The task's name and the job's id."""
        return f"{self.task_name}[{self.id}]"


def leave_note(job: procrastinate_jobs.Job, note: Note) -> None:
    """Leave with a job the note that is stored when the job ends. Raises TypeError if the engine did not fetch it."""
    _holder(job).note = note


def records_of(job: procrastinate_jobs.Job) -> JobRecords:
    """Return what a job reads first. Raises TypeError if the engine did not fetch it."""
    return _holder(job).records


def begins_next(job: procrastinate_jobs.Job) -> bool:
    """Return whether the end of a job may begin the next job of its lock. Call this before the statement is sent."""
    holder = _holder(job)
    is_allowed = holder.manager is not None and holder.manager.begins_next
    holder.may_have_ended |= is_allowed
    return is_allowed


def leave_ended(job: procrastinate_jobs.Job, rows: Sequence[Row] = ()) -> None:
    """Mark a job whose end was stored together with what follows from it, or that another worker has taken over.

    `rows` is the result of the statement that ended it. The worker begins the successor that they name.
    """
    holder = _holder(job)
    holder.has_ended = True
    if rows and holder.manager is not None:
        holder.manager.note_end(job, rows)


def _holder(job: procrastinate_jobs.Job) -> NoteHolder:
    if not isinstance(job, QuietJob):
        raise TypeError(NOT_FETCHED.format(job=job.id))
    return job.holder


@dataclass(frozen=True, slots=True)
class _Ending:
    """The end of a job: the statement `plain`, the statement `noted` that also stores the note, and their values."""

    plain: LiteralString
    noted: LiteralString
    values: Mapping[str, Any]


class EngineJobManager(JobManager):
    """The job manager of one worker; `give_up` is called if the end of a job cannot be stored.

    The manager tries for `patience` seconds to store it, and tells the `guard` whether the note of the try was stored.
    The worker runs at most `concurrency` jobs at once, and few while the `intake` counts many deliveries. `poll` is the
    pause between two fetches in seconds, `idle_poll` the longest one while no job can run.
    """

    connector: BaseAsyncConnector
    pause: float
    """The seconds until the worker must fetch again without a notification."""

    def __init__(
        self,
        connector: Connector,
        guard: Guard,
        give_up: Callable[[], None],
        *,
        intake: Intake | None = None,
        concurrency: int = 1,
        patience: float = WRITE_PATIENCE,
        poll: float = 0.5,
        idle_poll: float = 0.5,
    ) -> None:
        # Both connectors of the engine are Procrastinate's, too.
        super().__init__(cast("BaseAsyncConnector", connector))
        self.pause = self._poll = poll
        self._idle_poll = max(poll, idle_poll)
        self.is_idle = False
        """Whether no job waited or ran at the last check."""
        self._count_at_empty_fetch: int | None = -1
        """The number of notifications before the last fetch, if that found nothing; else a number that never occurs."""
        self._intake = intake or Intake()
        self._concurrency = concurrency
        self._fetched: deque[QuietJob] = deque()
        self._fetching = asyncio.Lock()
        """Held while the database may have begun jobs that are not in `_fetched` yet."""
        self._begun: set[int] = set()
        self._count_at_full_fetch: int | None = None
        """The number of notifications before the last fetch, if that fetched all jobs that could run."""
        self._is_asked_again = False
        """Whether the worker will ask for a job because it got one, and not because a poll or a notification came."""
        self._next_poll = 0.0
        """The time of the event loop when jobs may have come that were not announced."""
        self._is_stopping = False
        self.wake: Callable[[], None] = lambda: None
        """Makes the worker ask for a job; set by the worker."""
        self.begin: Callable[[QuietJob], bool] = lambda _: False
        """Begins a job and returns True, or returns False if there is no free place; set by the worker."""
        self._guard = guard
        self._give_up = give_up
        self._patience = patience

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> procrastinate_jobs.Job | None:
        """Return the next job that may run, from any queue: a worker of the engine serves all of them."""
        if not self._fetched:
            await self._fetch_more(worker_id)
        # Not an `else`: meanwhile, a job may have ended and begun its successor, or the worker may be stopping.
        if not self._fetched or self._is_stopping:
            return None
        job = self._fetched.popleft()
        self._begun.add(cast("int", job.id))
        return job

    async def _fetch_more(self, worker_id: int) -> None:
        count = self._notification_count()
        is_asked_again, self._is_asked_again = self._is_asked_again, False
        if is_asked_again and count is not None and count == self._count_at_full_fetch:
            # The worker always asks once more. The last fetch found no other job, and no notification has arrived since
            # it began.
            return
        if count == self._count_at_empty_fetch and not await self._can_fetch():
            return
        most = await self._intake.room(self._begun, self._concurrency)
        count, moment = self._notification_count(), self._now()
        async with self._fetching:
            rows = await self._fetch(worker_id, most)
            jobs = [self._quiet(row) for row in rows if row["id"] is not None]
            # Sorted here, because SQLite's RETURNING has no order: https://sqlite.org/lang_returning.html
            self._fetched.extend(sorted(jobs, key=lambda job: (-job.priority, job.id)))
        # SQLite also counts the notifications before its own fetch, such as that of the end of the last job.
        count = rows[0].get(NOTIFICATIONS, count)
        self._count_at_full_fetch = None if any(row.get("more", True) for row in rows) else count
        self._count_at_empty_fetch = -1 if jobs else count
        self._is_asked_again = bool(jobs)
        self.pause, self.is_idle = self._poll, False
        self._next_poll = moment + self._poll

    def _quiet(self, row: Row) -> QuietJob:
        job = cast("QuietJob", QuietJob.from_row(row))
        job.holder.manager = self
        return job

    @property
    def begins_next(self) -> bool:
        """Whether the end of a job may begin the next one of its lock: not while others must have their turn."""
        return not self._is_stopping and not self._intake.is_flooded()

    def note_end(self, job: procrastinate_jobs.Job, rows: Sequence[Row]) -> None:
        """Let the worker begin the job that the end of another has begun in the database, if `rows` name one."""
        self._guard.forget(cast("int", job.id))
        (row,) = rows
        # The end of a try that is repeated has no such column.
        if row.get("id") is None:
            return
        successor = self._quiet(row)
        reads, effects = _holder(job).records.names, cast("list[dict[str, Any]] | None", row["effects"])
        records = cast("list[dict[str, Any]]", row["records"] or []) if reads else None
        successor.holder.records = JobRecords(reads, records, effects)
        if not self._is_stopping and self.begin(successor):
            self._begun.add(cast("int", successor.id))
        else:
            self._fetched.append(successor)
            self._is_asked_again = self._now() < self._next_poll
            self.pause = max(0.0, self._next_poll - self._now())
            self.wake()

    def stop(self) -> None:
        """Return no more jobs, and let those that end begin no others."""
        self._is_stopping = True

    @staticmethod
    def _now() -> float:
        return asyncio.get_running_loop().time()

    async def _fetch(self, worker_id: int, most: int) -> list[dict[str, Any]]:
        """Fetch jobs; park those that cannot run as long as they fill the window, because others may wait behind."""
        values, window = {"worker_id": worker_id, "most": most}, WINDOW * most
        while True:
            rows = await self.connector.execute_query_all_async(FETCH, **values, window=window)
            if rows[0]["id"] is not None or rows[0][SCANNED] < window:
                return rows
            if not await self.connector.execute_query_all_async(PARK, window=window):
                return rows

    async def _can_fetch(self) -> bool:
        """Return whether a job may run, after a fetch that found none; else set the pause until the next check."""
        count_before, moment = self._notification_count(), self._now()
        (row,) = await self.connector.execute_query_all_async(NEXT_SCHEDULED, most=MOST_WAITING)
        seconds = self._idle_poll if row["seconds"] is None else float(row["seconds"])
        if row["scheduled"] < row["waiting"] or row["waiting"] == MOST_WAITING or seconds <= 0.0:
            return True
        self.is_idle = not row["waiting"] and not self._begun
        # The worker drops the notifications of a fetch, so it comes again at once for those that came meanwhile.
        is_current = self._notification_count() == count_before
        self.pause = min(max(seconds, self._poll), self._idle_poll) if is_current else 0.0
        self._next_poll = moment + self.pause
        return False

    def _notification_count(self) -> int | None:
        count: int | None = getattr(self.connector, "notification_count", None)
        return count

    async def register_worker(self) -> int:
        """Register a worker, which begins without jobs."""
        self._count_at_empty_fetch, self.pause, self.is_idle = -1, self._poll, False
        self._count_at_full_fetch = None
        self._is_asked_again = self._is_stopping = False
        self._fetched.clear()
        self._begun.clear()
        return await super().register_worker()

    async def unregister_worker(self, worker_id: int) -> None:
        """Unregister a worker, and return the jobs that it has not begun to the queue, where they lose no try."""
        unbegun = [job.id for job in self._fetched]
        self._fetched.clear()
        if unbegun:
            # If this fails, other workers take the jobs over, as after a crash.
            with contextlib.suppress(DatabaseFailure):
                await self.connector.execute_query_async(RETURN_UNBEGUN, ids=unbegun, worker_id=worker_id)
        await super().unregister_worker(worker_id)

    async def finish_job(
        self, job: procrastinate_jobs.Job, status: procrastinate_jobs.Status, delete_job: bool
    ) -> None:
        """Store the end of a job, and its note."""
        # `delete_job` is ignored: the stored rows make keys unique.
        await self._end(job, _Ending(FINISH, FINISH_NOTED, {"status": status.value}))

    async def retry_job(
        self,
        job: procrastinate_jobs.Job,
        retry_at: datetime.datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        """Return a job to the queue, and store its note."""
        # As a duration, because the database's clock decides when the wait is over.
        wait = (retry_at - datetime.datetime.now(datetime.UTC)).total_seconds() if retry_at else 0.0
        await self._end(job, _retrying(max(wait, 0.0), priority))

    async def _end(self, job: procrastinate_jobs.Job, ending: _Ending) -> None:
        job_id = cast("int", job.id)
        try:
            if not _holder(job).has_ended:
                await self._end_in_time(job, job_id, ending)
        finally:
            self._begun.discard(job_id)

    async def _end_in_time(self, job: procrastinate_jobs.Job, job_id: int, ending: _Ending) -> None:
        note = _holder(job).note
        clock = asyncio.get_running_loop().time
        deadline = clock() + self._patience
        while True:
            try:
                await self._write(job, ending, note)
            except DatabaseFailure as error:
                away = is_outage(error)
                if away and clock() <= deadline:
                    await asyncio.sleep(WRITE_PAUSE)
                    continue
                # Only the kind of the error: its text may quote the values of the statement.
                kind = type(error.__cause__ or error).__name__
                if note is not None and not away:
                    # The try then counts as a crash, so a job whose note can never be stored fails in the end.
                    log.error(NOT_NOTED, job=job_id, error=kind)  # noqa: TRY400
                    ending, note = _retrying(unnoted_wait(job.attempts), None), None
                    continue
                log.error(NOT_ENDED, job=job_id, error=kind)  # noqa: TRY400
                if note is not None:
                    self._guard.outlive(job_id)
                self._give_up()
            return

    async def _write(self, job: procrastinate_jobs.Job, ending: _Ending, note: Note | None) -> None:
        values = {**ending.values, "id": job.id, "worker_id": job.worker_id}
        may_have_ended = _holder(job).may_have_ended
        if note is None:
            rows = await self.connector.execute_query_all_async(ending.plain, **values)
        else:
            values |= {"outcome": note.outcome, "note": note.written()}
            if ending.noted == FINISH_NOTED:
                values |= {"begins_next": begins_next(job), "reads": _holder(job).records.names}
            rows = await self.connector.execute_query_all_async(ending.noted, **values)
        if not rows and may_have_ended:
            # The answer to an earlier statement was lost. If that ended the job, nobody knows of the successor.
            log.warning(ENDED_OR_TAKEN_OVER, job=job.id)
            async with self._fetching:
                known = [*self._begun, *(fetched.id for fetched in self._fetched)]
                values = {"lock": job.lock, "worker_id": job.worker_id, "known": known}
                await self.connector.execute_query_async(RETURN_UNKNOWN, **values)
        elif not rows:
            log.warning(TAKEN_OVER, job=job.id)
        elif note is not None:
            self.note_end(job, rows)


def _retrying(wait: float, priority: int | None) -> _Ending:
    return _Ending(RETRY, RETRY_NOTED, {"wait": wait, "priority": priority})
