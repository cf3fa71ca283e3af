"""The engine: deliveries and timers as durable work.

A process has one `Engine`. Web servers accept deliveries, workers run jobs, commands read and replay; a process may do
all of it.

Procrastinate 3.10 is the queue: on PostgreSQL through its own connector, on one SQLite file through ours
(`bot.engine.sqlite`), because most installations are one machine that should not need a database server. Other engines
did not order jobs by key, lost work on `kill -9`, or required a server. We chose neither two code paths nor an ORM
between the bot and the queue. The jobs table is outbox and audit log; our own tables are notes (the outcome of each
job), records (what handlers store), and the inbox.

Our connector answers 22 named queries, a semi-internal interface. So the version is pinned, the bot refuses to start if
the set of queries differs, and every test run applies the same random operations to both databases and compares the
results.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Any, LiteralString, Self
from uuid import uuid4

import structlog

from bot.core.errors import StorageError
from bot.core.events import Delivery, Payload
from bot.core.parts import PartKey
from bot.engine.changes import Changes
from bot.engine.database import Database
from bot.engine.internal import Announcement
from bot.engine.jobs.definitions import CONCLUDE, DELIVER, EFFECT, HANDLE, OWN_EVENT, REPLAY, RESUME, delivery_job
from bot.engine.jobs.inbox import STORE, RecentDeliveries, delivery_values, store_delivery
from bot.engine.jobs.journal import DeliveryRecord, Journal
from bot.engine.jobs.notes import IGNORED
from bot.engine.jobs.once import NewJob
from bot.engine.jobs.store import Store, note_of_ignored
from bot.engine.outage import release_waiting
from bot.engine.processor import (
    AppliedEffect,
    ConclusionJob,
    EffectJob,
    ErrorKind,
    JobObserver,
    NobodyWatches,
    PlannedEffect,
    PlannedEffects,
    Processor,
    Routing,
)
from bot.engine.records import Records
from bot.engine.replay import BulkProgress, Progress, dry_run, finished, planned_for, replay, replay_all
from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sql.transactions import Statement
from bot.engine.storable import StorageProbe
from bot.engine.upkeep import WorkerState, remove_old, remove_old_records, requeue_all, worker_states
from bot.engine.worker.guard import Guard
from bot.engine.worker.intake import Intake
from bot.engine.worker.queue import create_queue, register
from bot.engine.worker.supervisor import Supervisor, WorkerPace
from bot.engine.worker.tasks import Tasks
from bot.engine.worker.timers import EngineTimers, TimerWork, WorkCheck

__all__ = [
    "AppliedEffect",
    "Backlog",
    "ConclusionJob",
    "EffectJob",
    "Engine",
    "JobObserver",
    "PlannedEffect",
    "PlannedEffects",
    "Processor",
    "Routing",
    "StorageError",
    "TimerWork",
    "WorkerPace",
]

ACCEPT_TIMEOUT = 7.0
"""Seconds; an answer takes one more at most, and GitHub gives up after ten: https://docs.github.com/en/webhooks/using-webhooks/handling-failed-webhook-deliveries."""

PROBE_EVENT = "nightjar.probe"
"""An own event that gets no job: the first delivery that could be stored after an outage of the database."""
PROBE_TEXT = "the database stores deliveries again"

RETENTION, RETENTION_CRON = "retention", "23 3 * * *"

NO_PROCESSOR = "this engine has no processor, so it can neither run jobs nor plan"
REPLAY_PATIENCE = 60.0

# Only the arguments of the oldest job of each task are read, because arguments may hold whole payloads.
BACKLOG: LiteralString = """
SELECT queue.task, queue.waiting, job.id,
       CAST(job.args ->> 'received_at' AS double precision) AS oldest
  FROM (SELECT task_name AS task, count(*) AS waiting, min(id) AS first
          FROM procrastinate_jobs WHERE status = 'todo' GROUP BY task_name) AS queue
  JOIN procrastinate_jobs AS job ON job.id = queue.first
"""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Backlog:
    """The number of waiting jobs by task, and the age of the oldest delivery among them."""

    waiting: Mapping[str, int]
    oldest_seconds: float


class Engine:
    """Deliveries and timers as durable work, on the database of a URL.

    Without a `processor` it only accepts deliveries, reads and replays. `clock` returns the time of arrivals, and of a
    SQLite database, in seconds since 1970; a PostgreSQL server has its own clock. Raises DatabaseError for a URL that
    it cannot use.
    """

    def __init__(
        self,
        url: str,
        processor: Processor | None = None,
        *,
        observer: JobObserver | None = None,
        pace: WorkerPace | None = None,
        clock: Callable[[], float] = time.time,
        accept_timeout: float = ACCEPT_TIMEOUT,
    ) -> None:
        self.database = Database(url, clock)
        self._clock = clock
        self._accept_timeout = accept_timeout
        self._oldest: dict[str, tuple[int, float]] = {}
        """The oldest waiting job of each task, and when this process first saw it, by a monotonic clock."""
        self.journal = Journal(self.database.connector)
        self.records = Records(self.database.connector)
        self.new_changes = partial(Changes, self.records, self._event_statement, self.journal.known_guids)
        """Returns an empty collection of changes to records and of events to announce, to be stored together."""
        self._store = Store(self.database.connector)
        self._deliveries = RecentDeliveries()
        self._processor = processor
        self._observer = observer or NobodyWatches()
        self._pace = pace or WorkerPace()
        self._supervisor: Supervisor | None = None
        self._held = contextlib.ExitStack()
        self._recovered = False
        self._probe = StorageProbe(self._store_probe, self._resume_worker, self._pace.probe)
        self._app = create_queue(self.database.connector)
        self._guard = Guard(self._pace.job, min_age=self._pace.min_age)
        self._intake = Intake()
        self._timers = EngineTimers(self._app, self.database.connector, self._guard, self._kind_of, self._observer)
        self.every(RETENTION, RETENTION_CRON, self._remove_old)

    def _kind_of(self, error: BaseException) -> ErrorKind:
        return self._processor.kind_of(error) if self._processor is not None else ErrorKind.OTHER

    def use(self, processor: Processor) -> None:
        """Set the processor, if it needs the engine's records when it is created. Call it once, before `run`."""
        self._processor = processor

    async def __aenter__(self) -> Self:
        """Open the engine."""
        await self.open()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the engine."""
        await self.close()

    async def open(self) -> None:
        """Connect to the database. Raises DatabaseError."""
        await self.database.open()

    async def close(self) -> None:
        """Disconnect, after `run` has returned."""
        await self._probe.close()
        await self.database.close()
        # Release the lock last: until the file is closed, no other process may open it as its own.
        self._held.close()

    async def recover(self) -> None:
        """Reserve the database for this process's worker, and requeue the jobs of the previous one.

        On SQLite no other process may work on the file, so all running jobs return to the queue before the port opens.
        On PostgreSQL the reaper does this. Raises DatabaseError if another process works on the file.
        """
        if self._recovered:
            return
        self._held.enter_context(self.database.sole())
        self._recovered = True
        if self.database.embedded:
            for job in await requeue_all(self.database.connector):
                log.warning("requeued job of a dead worker", job=job.job_id, task=job.task, attempts=job.attempts)

    async def accept(
        self,
        guid: str,
        event: str,
        body: str | bytes | bytearray,
        lock: str,
        *,
        not_before: float | None = None,
        urgent: bool = False,
        ignored: Mapping[str, Any] | None = None,
        payload: Payload | None = None,
    ) -> bool:
        """Store a delivery durably; return True, or False if its GUID was stored before.

        `body` is the raw text of a JSON object, and `payload` that object if it is parsed already and small. Deliveries
        with the same `lock` are handled in order (`bot.core.events.lock_key`). An internal event may have to wait until
        `not_before`, in seconds since 1970. An `urgent` delivery, as every internal event is, goes before others, with
        all jobs that wait under its lock. A delivery that no handler accepts gets the note `ignored`
        (`bot.engine.jobs.store.note_of_ignored`) and no job. Raises `StorageError` if it could not be stored in time.
        """
        urgent = urgent or OWN_EVENT in event
        received_at = self._clock()
        job = delivery_job(guid, event, received_at, lock, not_before, urgent=urgent)
        raw = body.encode(errors="surrogatepass") if isinstance(body, str) else body
        self._intake.count()
        try:
            delivery_id = await self._store_in_time(job, raw, ignored)
        except StorageError as error:
            self._probe.failed(str(error))
            raise
        self._probe.succeeded()
        if delivery_id is None:
            return False
        if ignored is not None:
            self._observer.delivery(event, IGNORED, 0.0)
        elif payload is not None:
            self._deliveries.remember(delivery_id, Delivery(guid, event, payload, received_at))
        return True

    async def _store_in_time(
        self, job: NewJob, body: bytes | bytearray, ignored: Mapping[str, Any] | None = None
    ) -> int | None:
        try:
            async with asyncio.timeout(self._accept_timeout):
                return await store_delivery(self.database.connector, job, body, ignored)
        except TimeoutError:
            raise StorageError("TimeoutError") from None
        except DatabaseFailure as error:
            # Not chained: a database error may quote the payload.
            raise StorageError(type(error.__cause__ or error).__name__) from None

    async def _store_probe(self) -> None:
        delivery = Delivery(f"probe:{uuid4()}", PROBE_EVENT, Payload({}), self._clock())
        job = delivery_job(delivery.guid, delivery.event, delivery.received_at, PROBE_EVENT)
        await self._store_in_time(job, b"{}", note_of_ignored(delivery, PROBE_TEXT))

    def _resume_worker(self) -> None:
        if self._supervisor is not None:
            self._supervisor.recover()

    def every(
        self, name: str, cron: str, work: TimerWork, *, at_start: bool = False, has_work: WorkCheck | None = None
    ) -> None:
        """Run `work` by a schedule in UTC, once for each tick, however many replicas there are. Call this before `run`.

        A failed run is retried like any job; runs of one name never overlap. With `at_start` the work also runs when a
        worker starts. A tick is skipped if `has_work` returns False; the oldest worker asks it, for all replicas.
        """
        self._timers.add(name, cron, work, at_start=at_start, has_work=has_work)

    async def run(self) -> None:
        """Work until `stop`: run jobs and timers, and take over jobs of dead workers."""
        await self.recover()
        tasks = self._tasks()
        for name, task in (
            (DELIVER, tasks.deliver),
            (REPLAY, tasks.replay),
            (HANDLE, tasks.handle),
            (EFFECT, tasks.effect),
            (CONCLUDE, tasks.conclude),
            (RESUME, tasks.resume),
        ):
            register(self._app, name, task, self.database.connector, self._observer)
        self._supervisor = Supervisor(
            self._app,
            self.database.connector,
            self._pace,
            self._guard,
            self._intake,
            self._probe.failed,
            self._timers.tick,
            alone=self.database.embedded,
        )
        await self._timers.start(self._supervisor.is_first)
        await self._supervisor.run()

    async def stop(self) -> None:
        """Begin no more jobs; `run` returns when the running ones have ended."""
        if self._supervisor is not None:
            self._supervisor.stop()

    def ready(self) -> str | None:
        """Return why deliveries cannot be stored, or why no jobs run; None if both work."""
        if self._probe.problem is not None:
            return self._probe.problem
        return self._supervisor.problem if self._supervisor is not None else "the worker has not started"

    async def backlog(self) -> Backlog:
        """Count the waiting jobs."""
        rows: list[dict[str, Any]] = await self.database.connector.execute_query_all_async(BACKLOG)
        moment, uptime = self._clock(), time.monotonic()
        waiting_rows = [row for row in rows if row["task"] != RESUME]  # jobs of `resume` wait on purpose
        previous = self._oldest
        self._oldest = {
            row["task"]: previous[row["task"]]
            if previous.get(row["task"], (None,))[0] == row["id"]
            else (row["id"], uptime)
            for row in waiting_rows
        }
        ages = [moment - row["oldest"] for row in waiting_rows if row["oldest"] is not None]
        # Also count from the first time we saw the job: if the clock was wrong, its arrival may be in the future.
        ages += [uptime - first_seen for _, first_seen in self._oldest.values()]
        # Two zeros, because `max` of a single number raises.
        return Backlog({row["task"]: row["waiting"] for row in rows}, oldest_seconds=max(0.0, *ages, 0.0))

    async def release_waiting(self) -> None:
        """Retry every job that waits for a service now, in all processes."""
        await release_waiting(self.database.connector)

    async def workers(self) -> list[WorkerState]:
        """Return the workers of all processes on this database."""
        states = await worker_states(self.database.connector, self._pace.stalled)
        # The only worker on a SQLite file stores no heartbeats (`bot.engine.worker.supervisor`).
        alone = self.database.embedded
        return [replace(state, silent_seconds=0.0, counts_as_dead=False) for state in states] if alone else states

    async def replay(
        self, guid: str, *, patience: float | None = REPLAY_PATIENCE, progress: Progress | None = None
    ) -> DeliveryRecord:
        """Replay a delivery: its failed jobs, or all of it if nothing failed; wait until its jobs have ended.

        A running worker, here or in another process, does the work. Returns the state of the delivery then, or after
        `patience` seconds; `progress` is called with every change. Raises `UserError` if the GUID is unknown.
        """
        await replay(self._store, self.journal, guid)
        return await finished(self.journal, guid, patience=patience, progress=progress)

    async def replay_all(
        self, guids: Sequence[str], *, interval: float, patience: float, progress: BulkProgress
    ) -> list[DeliveryRecord]:
        """Replay deliveries in their order, one every `interval` seconds; see `bot.engine.replay.replay_all`."""
        return await replay_all(
            self._store, self.journal, guids, interval=interval, patience=patience, progress=progress
        )

    async def dry_run(self, guid: str) -> dict[str, Any]:
        """Return the plans that handlers would make for a delivery now, as JSON; write nothing. Raises `UserError`."""
        return await dry_run(self.journal, self._tasks(), guid)

    async def preview(self, delivery: Delivery) -> dict[str, Any]:
        """Return the plans that handlers would make for a delivery that is not stored, as JSON; nothing is written."""
        return await planned_for(self._tasks().processor, delivery)

    async def finished(self, guid: str, *, patience: float | None, progress: Progress | None = None) -> DeliveryRecord:
        """Wait until all jobs of a delivery have ended, or for `patience` seconds; return the state of the delivery."""
        return await finished(self.journal, guid, patience=patience, progress=progress)

    def _tasks(self) -> Tasks:
        if self._processor is None:
            raise RuntimeError(NO_PROCESSOR)
        return Tasks(
            self._store,
            self._processor,
            self._observer,
            self._guard,
            self.new_changes,
            self._deliveries,
            self._pace.check_after,
            self._pace.first_wait,
        )

    def _event_statement(self, event: Announcement, not_before: float | None) -> Statement:
        job = delivery_job(event.guid, event.event, self._clock(), event.lock, not_before, urgent=True)
        return STORE, delivery_values(job, event.body.encode(errors="surrogatepass"))

    async def _remove_old(self) -> str:
        jobs = await remove_old(self.database.connector)
        records = await remove_old_records(self.database.connector)
        return f"removed {jobs} jobs and deliveries, and {records} records"


ENGINE = PartKey[Engine]("engine")
"""The engine of a process."""
