"""The workers of all processes that share a database."""

from __future__ import annotations

from dataclasses import dataclass
from typing import LiteralString

from procrastinate.connector import BaseAsyncConnector

WORKERS: LiteralString = """
SELECT worker.id, date_part('epoch', now()) - date_part('epoch', worker.last_heartbeat) AS silent,
       (SELECT count(*) FROM procrastinate_jobs AS job WHERE job.status = 'doing' AND job.worker_id = worker.id) AS jobs
  FROM procrastinate_workers AS worker ORDER BY worker.id
"""


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A worker: the seconds since its last heartbeat, by the database's clock, and the number of jobs it does.

    If it `counts_as_dead`, other workers take over its jobs.
    """

    worker_id: int
    silent_seconds: float
    jobs: int
    counts_as_dead: bool


async def worker_states(connector: BaseAsyncConnector, stalled: float) -> list[WorkerState]:
    """Return all workers that were not removed yet; without a heartbeat for `stalled` seconds, one counts as dead."""
    rows = await connector.execute_query_all_async(WORKERS)
    silent = [max(0.0, float(row["silent"])) for row in rows]
    return [
        WorkerState(row["id"], seconds, row["jobs"], seconds > stalled)
        for row, seconds in zip(rows, silent, strict=True)
    ]
