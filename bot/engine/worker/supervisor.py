"""Keep one worker running, and start it again whenever it or the database fails.

On PostgreSQL, every worker stores a heartbeat every few seconds, so that others notice when it dies. A SQLite file has
one worker, so nobody would read its heartbeats, and each would write 4 kB.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from typing import cast

import structlog
from procrastinate import App, JobContext
from procrastinate.jobs import Job
from procrastinate.worker import Worker

from bot.engine.outage import is_outage
from bot.engine.retry import FIRST_WAIT, Failed
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sql.portable import JSONDict
from bot.engine.sql.transactions import Connector
from bot.engine.upkeep import (
    TOLERATED,
    first_worker,
    needed_upkeep,
    raise_oldest,
    requeue_all,
    requeue_stalled,
    restart_waits,
)
from bot.engine.worker.guard import JOB_SECONDS, MIN_AGE, Guard
from bot.engine.worker.intake import Intake
from bot.engine.worker.manager import EngineJobManager
from bot.engine.worker.timers import LatestTicks, Tick
from bot.engine.writes import CHECK_AFTER

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before a failed worker is started again. The pause doubles until a worker has run for `HELD_OUT` seconds."""

HELD_OUT = 60.0
REAP_SECONDS = 10.0
"""Seconds for one search for dead workers, which takes milliseconds, before the database counts as unavailable."""

NEVER = 1e9
"""Seconds without a heartbeat after which a worker that is alone on its database counts as dead."""
ABORT_POLL = 3600.0
"""Seconds between two queries for jobs that must be aborted: a notification says so, too, and nothing aborts jobs."""

IDLE_PAUSES = 6
"""Pauses between two searches after which a worker that is alone and idle checks whether it still is."""

NOT_STARTED = "the worker has not started"
NOT_RUNNING = "the worker is not running"
NO_DATABASE = "the database does not answer"
LOST_WORKER = "a job lost its worker"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerPace:
    """The number of jobs that run at once, and the intervals and time limits of the engine in seconds.

    On PostgreSQL, a worker without a heartbeat for `stalled` seconds counts as dead, and other workers take its jobs.
    So a job must never block the event loop for nearly that long. While no job waits, the worker polls every
    `idle_poll` seconds, on PostgreSQL `reap`: then only other processes on a SQLite file can insert a job without a
    notification.
    """

    concurrency: int = 50
    poll: float = 0.5
    idle_poll: float = 3.0
    stalled: float = 20.0
    reap: float = 5.0
    graceful: float = 20.0
    job: float = JOB_SECONDS
    first_wait: float = FIRST_WAIT
    """The wait before the first retry of a job that failed for a transient reason: `bot.engine.retry`."""
    probe: float = 1.0
    """The interval between two checks whether the database stores deliveries again: `bot.engine.storable`."""
    check_after: float = CHECK_AFTER
    """The wait between two checks for a write whose answer was lost: `bot.engine.writes`."""
    min_age: float = MIN_AGE
    """The age of a process in which a suspect may run: `bot.engine.worker.guard`."""


class EngineWorker(Worker):
    """Procrastinate's worker, with ticks and pauses of ours; the supervisor stores its heartbeats."""

    def __init__(self, app: App, manager: EngineJobManager, tick: Tick, pace: WorkerPace) -> None:
        super().__init__(
            app,
            concurrency=pace.concurrency,
            install_signal_handlers=False,  # the server has its own
            abort_job_polling_interval=ABORT_POLL,
            stalled_worker_timeout=pace.stalled,
            shutdown_graceful_timeout=pace.graceful,
            delete_jobs="never",  # the stored row refuses a second job with its key
        )
        self._manager = manager
        self._tick = tick
        self._context = copy_context()
        manager.wake, manager.begin = self._new_job_event.set, self._begin

    def stop(self) -> None:
        """Begin no more jobs, not even those that are being fetched or that the end of another begins."""
        self._manager.stop()
        super().stop()  # type: ignore[no-untyped-call]

    def _begin(self, job: Job) -> bool:
        """Begin the job that the end of another has begun in the database; return False if there is no free place.

        Procrastinate's own loop would make seven tasks for it, which wait for a free place, a job, a poll or `stop`.
        """
        if len(self._running_jobs) >= self.concurrency:
            return False
        context = JobContext(
            app=self.app,
            worker_name=self.worker_name,
            worker_queues=self.queues,
            job=job,
            abort_reason=lambda: self._job_ids_to_abort.get(cast("int", job.id)),
            start_timestamp=time.time(),
        )
        # Not in the context of the job that has just ended, whose fields would be in the log lines of this one.
        task = asyncio.create_task(self._run_job(context), context=self._context.copy())
        self._running_jobs[task] = context
        task.add_done_callback(self._running_jobs.pop)
        return True

    async def _run_job(self, context: JobContext) -> None:
        async with self._job_semaphore:
            await self._process_job(context)

    def _log_extra(self, *_: object, **__: object) -> JSONDict:
        return {}  # our log shows no extra fields of a record, and the arguments of jobs must not be there

    async def _shutdown(self, side_tasks: list[asyncio.Task[None]]) -> None:
        # Also after a fetch that failed, without `stop`: nobody would run the successors of jobs that still end.
        self._manager.stop()
        await super()._shutdown(side_tasks)

    @property
    def fetch_job_polling_interval(self) -> float:
        """Return the seconds until the next fetch, which Procrastinate reads before each pause."""
        return self._manager.pause

    @fetch_job_polling_interval.setter
    def fetch_job_polling_interval(self, _: float) -> None:
        """Ignore the constant pause of Procrastinate's own worker."""

    async def _periodic_deferrer(self) -> None:
        await LatestTicks(self.app.periodic_registry, self._tick).worker()

    async def _update_heartbeat(self) -> None:
        await asyncio.Event().wait()


class Supervisor:
    """Run workers one after the other until `stop`, and requeue the jobs of dead workers.

    `outage` is called with the reason whenever the database fails; `recover` must be called once it works again. `tick`
    handles the moments of timers. `alone` says that no other worker can use the database.
    """

    def __init__(
        self,
        app: App,
        connector: Connector,
        pace: WorkerPace,
        guard: Guard,
        intake: Intake,
        outage: Callable[[str], None],
        tick: Tick,
        *,
        alone: bool,
    ) -> None:
        self._app = app
        self._connector = connector
        self._manager = EngineJobManager(
            connector,
            guard,
            self._restart,
            intake=intake,
            concurrency=pace.concurrency,
            poll=pace.poll,
            idle_poll=pace.idle_poll if alone else max(pace.idle_poll, pace.reap),
        )
        self._pace = pace
        self._tick = tick
        self._alone = alone
        self._guard = guard
        self._worker: Worker | None = None
        self._outage = outage
        self._stopping = asyncio.Event()
        self._recovered = asyncio.Event()
        self._reap_now = asyncio.Event()
        self._problem = NOT_STARTED
        self._ahead: float | None = None
        self._first: int | None = None
        self._first_until = 0.0
        logging.getLogger("procrastinate.worker").addFilter(_is_unreported)
        app.job_manager = self._manager

    @property
    def problem(self) -> str | None:
        """The reason why no jobs run; None while the worker is healthy."""
        if self._problem:
            return self._problem
        return None if self._worker is not None and self._worker.worker_id is not None else NOT_RUNNING

    def stop(self) -> None:
        """Fetch no more jobs. `run` returns when the running jobs have ended; it cancels those that take long."""
        self._stopping.set()
        self._guard.stop()
        self._restart()

    def recover(self) -> None:
        """Restart a failed worker and search for dead workers now, because the database works again."""
        self._recovered.set()
        self._reap_now.set()

    def _restart(self) -> None:
        if self._worker is not None:
            self._worker.stop()  # type: ignore[no-untyped-call]

    async def is_first(self) -> bool:
        """Return whether no older worker lives, so that this process does what one process must do."""
        worker_id = self._worker.worker_id if self._worker is not None else None
        if not self._alone and time.monotonic() >= self._first_until:
            self._first_until = time.monotonic() + self._pace.reap
            self._first = await first_worker(self._connector, seconds=self._pace.stalled)
        return self._alone or self._first == worker_id

    async def run(self) -> None:
        """Work until `stop`."""
        reaper = asyncio.create_task(self._reap_for_ever(), name="reaper")
        try:
            await self._work_for_ever()
        finally:
            reaper.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reaper

    async def _work_for_ever(self) -> None:
        pause = FIRST_PAUSE
        while not self._stopping.is_set():
            began = time.monotonic()
            try:
                if self._alone:
                    for job in await requeue_all(self._connector):
                        log.warning(LOST_WORKER, job=job.job_id, task=job.task, attempts=job.attempts)
                self._worker = EngineWorker(self._app, self._manager, self._tick, self._pace)
                self._problem = ""
                await self._worker.run()  # type: ignore[no-untyped-call]
            except Exception as error:  # the next worker starts whatever the error is
                log.warning("the worker ended", error=_kind(error))
                if is_outage(error):
                    self._outage(_cause(error))
            finally:
                self._worker = None
            if (task := asyncio.current_task()) is not None and task.cancelling():
                # A worker that fails to unregister raises that error instead of the cancellation.
                raise asyncio.CancelledError
            if self._stopping.is_set():
                return
            if time.monotonic() - began > HELD_OUT:
                pause = FIRST_PAUSE
            log.warning("the worker starts again", seconds=pause)
            self._recovered.clear()
            await self._wait(pause, self._recovered)
            pause = FIRST_PAUSE if self._recovered.is_set() else min(pause * 2, LONGEST_PAUSE)

    async def _reap_for_ever(self) -> None:
        while not self._stopping.is_set():
            try:
                # A table that another program has locked never answers, and reports no error.
                async with asyncio.timeout(REAP_SECONDS):
                    if self._has_upkeep():
                        await self._reap()
            except (DatabaseFailure, TimeoutError) as error:
                self._problem = NO_DATABASE
                self._outage(_cause(error))
                log.warning("the database does not answer", error=_kind(error))
            except Exception:
                log.exception("the search for dead workers failed")
            else:
                self._problem = ""
            pauses = 1 if self._has_upkeep() else IDLE_PAUSES
            await self._wait(pauses * self._pace.reap, self._reap_now)
            self._reap_now.clear()

    def _has_upkeep(self) -> bool:
        """Return whether there may be something to do, or the database may be away."""
        # A worker that is alone, runs and is idle has just read that no job waits.
        return bool(self.problem) or not self._alone or not self._manager.is_idle

    async def _reap(self) -> None:
        worker = self._worker
        if worker is not None and worker.worker_id is not None and not self._alone:
            # First our own heartbeat: if the whole process paused (the machine slept), our worker is not dead.
            await self._manager.update_heartbeat(worker.worker_id)
        stalled = NEVER if self._alone else self._pace.stalled
        needed = await needed_upkeep(self._connector, seconds=stalled)
        if self._jumped_back(needed.moment) and (jobs := await restart_waits(self._connector)):
            log.warning("the clock was set back; waiting jobs are scheduled again from now", jobs=len(jobs))
        if needed.raises:
            await raise_oldest(self._connector, needed.moment)
        if needed.requeues:
            for job in await requeue_stalled(self._connector, seconds=stalled):
                log.warning(LOST_WORKER, job=job.job_id, task=job.task, attempts=job.attempts)

    def _jumped_back(self, moment: float) -> bool:
        """Return whether the database's clock was set back since the last call; the first call returns True."""
        ahead, last_ahead = moment - time.monotonic(), self._ahead
        self._ahead = ahead
        return last_ahead is None or ahead < last_ahead - TOLERATED

    async def _wait(self, seconds: float, earlier: asyncio.Event) -> None:
        """Wait for some seconds, or until `stop` or the event `earlier`."""
        waits = [asyncio.ensure_future(event.wait()) for event in (self._stopping, earlier)]
        try:
            await asyncio.wait(waits, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for wait in waits:
                wait.cancel()


def _is_unreported(record: logging.LogRecord) -> bool:
    """Return False for Procrastinate's log record of a failed job: `attempt` has logged the reason already."""
    return not (record.exc_info and isinstance(record.exc_info[1], Failed))


def _cause(error: BaseException) -> str:
    return type(error.__cause__ or error).__name__


def _kind(error: Exception) -> str:
    # Without the message, because a database may quote the values of the statement.
    cause = error.__cause__
    return f"{type(error).__name__}: {type(cause).__name__}" if cause else type(error).__name__
