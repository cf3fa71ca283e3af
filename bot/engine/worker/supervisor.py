"""Keep one worker running, and start it again whenever it or the database fails."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from procrastinate import App
from procrastinate.connector import BaseAsyncConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.worker import Worker

from bot.engine.outage import is_outage
from bot.engine.retry import FIRST_WAIT, Failed
from bot.engine.upkeep import TOLERATED, clock, raise_oldest, requeue_stalled, restart_waits
from bot.engine.worker.guard import JOB_SECONDS, MIN_AGE, Guard
from bot.engine.worker.intake import Intake
from bot.engine.worker.manager import EngineJobManager
from bot.engine.worker.timers import LatestTicks
from bot.engine.writes import CHECK_AFTER

FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Seconds before a failed worker is started again. The pause doubles until a worker has run for `HELD_OUT` seconds."""

HELD_OUT = 60.0
REAP_SECONDS = 10.0
"""Seconds for one search for dead workers, which takes milliseconds, before the database counts as unavailable."""

NOT_STARTED = "the worker has not started"
NOT_RUNNING = "the worker is not running"
NO_DATABASE = "the database does not answer"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class WorkerPace:
    """The number of jobs that run at once, and the intervals and time limits of the engine in seconds.

    A worker without a heartbeat for `stalled` seconds counts as dead, and other workers take its jobs. So a job must
    never block the event loop for nearly that long.
    """

    concurrency: int = 50
    poll: float = 0.5
    heartbeat: float = 5.0
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
    """Procrastinate's worker, with ticks of ours."""

    async def _periodic_deferrer(self) -> None:
        await LatestTicks(registry=self.app.periodic_registry, **self.app.periodic_defaults).worker()


class Supervisor:
    """Run workers one after the other until `stop`, and requeue the jobs of dead workers.

    `outage` is called with the reason whenever the database fails; `recover` must be called once it works again.
    """

    def __init__(
        self,
        app: App,
        connector: BaseAsyncConnector,
        pace: WorkerPace,
        guard: Guard,
        intake: Intake,
        outage: Callable[[str], None],
    ) -> None:
        self._app = app
        self._connector = connector
        self._manager = EngineJobManager(connector, guard, self._restart, intake=intake, concurrency=pace.concurrency)
        self._pace = pace
        self._guard = guard
        self._worker: Worker | None = None
        self._outage = outage
        self._stopping = asyncio.Event()
        self._recovered = asyncio.Event()
        self._reap_now = asyncio.Event()
        self._problem = NOT_STARTED
        self._ahead: float | None = None
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
                self._worker = self._new_worker()
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

    def _new_worker(self) -> Worker:
        return EngineWorker(
            self._app,
            concurrency=self._pace.concurrency,
            install_signal_handlers=False,  # the server has its own
            fetch_job_polling_interval=self._pace.poll,
            update_heartbeat_interval=self._pace.heartbeat,
            stalled_worker_timeout=self._pace.stalled,
            shutdown_graceful_timeout=self._pace.graceful,
            delete_jobs="never",  # the stored row refuses a second job with its key
        )

    async def _reap_for_ever(self) -> None:
        while not self._stopping.is_set():
            try:
                # A table that another program has locked never answers, and reports no error.
                async with asyncio.timeout(REAP_SECONDS):
                    await self._reap()
            except (ConnectorException, TimeoutError) as error:
                self._problem = NO_DATABASE
                self._outage(_cause(error))
                log.warning("the database does not answer", error=_kind(error))
            except Exception:
                log.exception("the search for dead workers failed")
            else:
                self._problem = ""
            await self._wait(self._pace.reap, self._reap_now)
            self._reap_now.clear()

    async def _reap(self) -> None:
        worker = self._worker
        if worker is not None and worker.worker_id is not None:
            # First our own heartbeat: if the whole process paused (the machine slept), our worker is not dead.
            await self._manager.update_heartbeat(worker.worker_id)
        moment = await clock(self._connector)
        if self._jumped_back(moment) and (jobs := await restart_waits(self._connector)):
            log.warning("the clock was set back; waiting jobs are scheduled again from now", jobs=len(jobs))
        await raise_oldest(self._connector, moment)
        for job in await requeue_stalled(self._connector, seconds=self._pace.stalled):
            log.warning("a job lost its worker", job=job.job_id, task=job.task, attempts=job.attempts)

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
