"""Procrastinate's job manager, with three habits changed.

- A job shows its name and id alone when it is logged: its arguments hold whole webhook bodies.
- How a job ended is written even if the database is away for a moment: otherwise it stays `doing` for ever, for its
  worker lives on, and with it everything that waits for its lock.
- Only the worker that holds a job may end it: one that was frozen while others took its work over comes too late.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable, Iterable
from typing import Any, LiteralString

import attr
import structlog
from procrastinate import jobs as procrastinate_jobs
from procrastinate import types
from procrastinate.connector import BaseAsyncConnector
from procrastinate.exceptions import ConnectorException
from procrastinate.manager import JobManager

from bot.engine.outage import is_outage

WRITE_PATIENCE = 12.0
"""Seconds to go on trying to write how a job ended: below the time after which others take the job over."""

WRITE_PAUSE = 0.3

FINISH: LiteralString = """
UPDATE procrastinate_jobs
   SET status = %(status)s::procrastinate_job_status, abort_requested = FALSE, attempts = attempts + 1
 WHERE id = %(id)s AND status = 'doing' AND worker_id = %(worker_id)s RETURNING id
"""
RETRY: LiteralString = """
UPDATE procrastinate_jobs
   SET status = 'todo', abort_requested = FALSE, attempts = attempts + 1,
       scheduled_at = to_timestamp(date_part('epoch', now()) + %(wait)s),
       priority = coalesce(%(priority)s::integer, priority)
 WHERE id = %(id)s AND status = 'doing' AND worker_id = %(worker_id)s RETURNING id
"""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@attr.dataclass(frozen=True, kw_only=True)
class QuietJob(procrastinate_jobs.Job):
    """A job whose arguments never reach a log."""

    @property
    def call_string(self) -> str:
        """The task's name and the job's id."""
        return f"{self.task_name}[{self.id}]"

    def log_context(self) -> types.JSONDict:
        """Return what Procrastinate's own log lines carry."""
        return {"id": self.id, "task_name": self.task_name, "attempts": self.attempts}


class EngineJobManager(JobManager):
    """The job manager of one worker; `give_up` is called when the outcome of a job could not be written at all."""

    connector: BaseAsyncConnector

    def __init__(self, connector: BaseAsyncConnector, give_up: Callable[[], None]) -> None:
        super().__init__(connector)
        self._give_up = give_up

    async def fetch_job(self, queues: Iterable[str] | None, worker_id: int) -> procrastinate_jobs.Job | None:
        """Take the next job that may run."""
        job = await super().fetch_job(queues, worker_id)
        # Flat: the arguments may hold a whole payload, which `asdict` would copy.
        return None if job is None else QuietJob(**attr.asdict(job, recurse=False))

    async def finish_job(
        self, job: procrastinate_jobs.Job, status: procrastinate_jobs.Status, delete_job: bool
    ) -> None:
        """Write that a job has ended."""
        # `delete_job` does not count: our worker never deletes, for the rows are what makes a key unique.
        await self._write(job, FINISH, status=status.value)

    async def retry_job(
        self,
        job: procrastinate_jobs.Job,
        retry_at: datetime.datetime | None = None,
        priority: int | None = None,
        queue: str | None = None,
        lock: str | None = None,
    ) -> None:
        """Return a job to the queue."""
        # The wait counts by the clock of the database, which also says when it is over.
        wait = (retry_at - datetime.datetime.now(datetime.UTC)).total_seconds() if retry_at else 0.0
        await self._write(job, RETRY, wait=max(wait, 0.0), priority=priority)

    async def _write(self, job: procrastinate_jobs.Job, statement: LiteralString, **values: Any) -> None:
        clock = asyncio.get_running_loop().time
        deadline = clock() + WRITE_PATIENCE
        while True:
            try:
                rows = await self.connector.execute_query_all_async(
                    statement, id=job.id, worker_id=job.worker_id, **values
                )
            except ConnectorException as error:
                if clock() > deadline or not is_outage(error):
                    # Its kind alone: a database may quote what was to be stored.
                    kind = type(error.__cause__ or error).__name__
                    log.error("how a job ended could not be stored", job=job.id, error=kind)  # noqa: TRY400
                    self._give_up()
                    return
            else:
                if not rows:
                    log.warning("a job was taken over by another worker before it ended here", job=job.id)
                return
            await asyncio.sleep(WRITE_PAUSE)
