"""Run timers: once for each tick, however many replicas there are.

Procrastinate ticks on every worker. A tick only inserts the job that does the work, under a key of the timer's name and
the moment. If another replica ticks for the same moment, the key prevents a second job. A job costs about 100 kB of
writes, so for a timer that rarely has work the oldest worker reads first whether there is any, and otherwise inserts no
job.
"""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Iterator
from typing import Any, LiteralString, cast

import structlog
from procrastinate import App, JobContext
from procrastinate.periodic import PeriodicDeferrer, PeriodicRegistry, PeriodicTask, TaskAtTime

from bot.core.errors import UserError
from bot.engine.jobs.definitions import TICK, TIMER, URGENT_PRIORITY, timer_job
from bot.engine.jobs.once import defer_once
from bot.engine.processor import ErrorKind, JobObserver
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sql.transactions import Connector
from bot.engine.worker.guard import Guard
from bot.engine.worker.queue import EngineRetry, register
from bot.engine.worker.tasks import Attempt, JobOutcome

LONGEST_OUTAGE = 86400.0
"""Seconds: a scheduled time that was missed by less than this runs at start."""

RAN, SKIPPED = "ran", "skipped"
GAVE_WAY = "a later run of this timer is pending"
UNKNOWN_TIMER = "this version has no timer {name}"
UNCHECKED = "could not check whether a timer has work, so it runs"

NEWER: LiteralString = """
SELECT id FROM procrastinate_jobs WHERE lock = %(lock)s AND status = 'todo' AND id > %(id)s LIMIT 1
"""

TimerWork = Callable[[], Awaitable[object]]
WorkCheck = Callable[[], Awaitable[bool]]
"""Returns whether a timer has work. It only reads. The oldest worker calls it."""
Tick = Callable[[str, int], Coroutine[None, None, None]]
"""Handles a moment of the timer of a name, in seconds since 1970."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def _always() -> bool:
    return True


class LatestTicks(PeriodicDeferrer):
    """Ticks once for each timer, however many ticks were missed while the machine slept or its clock was wrong.

    A slow tick delays no other timer; until it ends, its own timer does not tick again.
    """

    def __init__(self, registry: PeriodicRegistry, tick: Tick) -> None:
        super().__init__(registry, LONGEST_OUTAGE)
        self._tick = tick
        self._ticking: dict[str, asyncio.Task[None]] = {}

    async def worker(self) -> None:
        """Tick until cancelled. Raises the errors of a tick."""
        async with asyncio.TaskGroup() as self._tasks:
            await super().worker()

    async def defer_jobs(self, jobs_to_defer: Iterable[TaskAtTime]) -> None:
        """Tick for each timer."""
        for task, moment in jobs_to_defer:
            name = task.periodic_id
            if name not in self._ticking or self._ticking[name].done():
                self._ticking[name] = self._tasks.create_task(self._tick(name, moment), name=f"tick {name}")

    def get_timestamps(
        self, periodic_task: PeriodicTask[Any, Any, Any], since: int | None, until: float
    ) -> Iterator[int]:
        """Yield the latest moment of a timer until a time, in seconds since 1970, if it is after `since`."""
        # Without `since`, Procrastinate yields only the tick that a starting worker catches up with.
        for timestamp in super().get_timestamps(periodic_task, None, until):
            if since is None or timestamp > since:
                yield timestamp


class EngineTimers:
    """The timers of one engine."""

    def __init__(
        self,
        app: App,
        connector: Connector,
        guard: Guard,
        kind_of: Callable[[BaseException], ErrorKind],
        observer: JobObserver,
    ) -> None:
        self._kind_of = kind_of
        self._app = app
        self._guard = guard
        self._connector = connector
        self._work: dict[str, TimerWork] = {}
        self._checks: dict[str, WorkCheck] = {}
        self._at_start: list[str] = []
        self._is_first: Callable[[], Awaitable[bool]] = _always
        self._started = 0.0
        self._no_tick_yet: set[str] = set()
        # Earlier versions stored a job for each tick.
        self._tick = app.task(name=TICK, retry=EngineRetry(), priority=URGENT_PRIORITY)(self._on_tick)
        register(app, TIMER, self._on_timer, connector, observer)

    def add(self, name: str, cron: str, work: TimerWork, *, at_start: bool, has_work: WorkCheck | None = None) -> None:
        """Run `work` by a schedule if it `has_work`, and with `at_start` also when a worker starts."""
        self._work[name] = work
        if has_work is not None:
            self._checks[name] = has_work
        registered = cast("Any", self._app.periodic(cron=cron, periodic_id=name, task_kwargs={"name": name}))
        registered(self._tick)
        if at_start:
            self._at_start.append(name)

    async def start(self, is_first: Callable[[], Awaitable[bool]]) -> None:
        """Insert the jobs of the timers that run when a worker starts.

        From now on, a timer is asked whether it has work only while `is_first` returns True.
        """
        self._is_first = is_first
        # Every start has a separate key. If several jobs of a timer wait, only the newest one works.
        moment = f"start:{uuid.uuid4()}"
        self._started, self._no_tick_yet = time.time(), set(self._at_start)
        await defer_once(self._connector, [timer_job(name, moment) for name in self._at_start])

    async def tick(self, name: str, moment: int) -> None:
        """Insert the job of a timer for a moment, if it has work. Raises DatabaseFailure."""
        # A worker that starts also ticks for the moment before, but the run of the start is later than that. Only the
        # first tick: if somebody sets the clock back, the following ones are not before the start.
        first = name in self._no_tick_yet
        self._no_tick_yet.discard(name)
        if first and moment <= self._started:
            return
        if await self._has_work(name):
            await defer_once(self._connector, [timer_job(name, moment)])

    async def _has_work(self, name: str) -> bool:
        check = self._checks.get(name)
        if check is None:
            return True
        try:
            return await self._is_first() and await check()
        except DatabaseFailure:
            raise
        # The job tries again, and its failure is stored.
        except Exception as error:
            log.info(UNCHECKED, timer=name, error=type(error).__name__)
            return True

    async def _on_tick(self, *, name: str, timestamp: int) -> None:
        await self.tick(name, timestamp)

    async def _on_timer(self, context: JobContext, *, name: str) -> None:
        async def work() -> JobOutcome:
            lock, job_id = context.job.lock, context.job.id
            if await self._connector.execute_query_all_async(NEWER, lock=lock, id=job_id):
                return JobOutcome(SKIPPED, GAVE_WAY)
            if name not in self._work:
                raise UserError(UNKNOWN_TIMER.format(name=name))
            result = await self._work[name]()
            return JobOutcome(RAN, result if isinstance(result, str) else "")

        await Attempt(
            job=context.job,
            work=work,
            guard=self._guard,
            watch=lambda *_: None,
            message=str,
            kind_of=self._kind_of,
            labels={"timer": name},
        ).run(self._connector)
