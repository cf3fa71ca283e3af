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
    """A worker: since when it is silent, in seconds by the database's clock, and how many jobs it does."""

    worker_id: int
    silent_seconds: float
    jobs: int


async def worker_states(connector: BaseAsyncConnector) -> list[WorkerState]:
    """Return all workers that were not removed yet."""
    rows = await connector.execute_query_all_async(WORKERS)
    return [WorkerState(row["id"], max(0.0, float(row["silent"])), row["jobs"]) for row in rows]
