"""SQLite's counterparts of the statements in `bot.engine.jobs.steps`: its statements write to one table only."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from functools import partial

from bot.engine.jobs.notes import WRITE
from bot.engine.jobs.steps import FETCH, FINISH, FINISH_NOTED, RETRY, RETRY_NOTED
from bot.engine.sql import portable
from bot.engine.sql.portable import Row
from bot.engine.sqlite.queries import COLUMNS, fetch_job

LOCKS = "SELECT lock FROM procrastinate_jobs WHERE status = 'doing' AND lock IS NOT NULL"
# In the order of the index, so the first job of a lock is the one that may run. INDEXED BY is an error if that changes.
WAITING = """
SELECT id, lock, scheduled_at IS NULL OR scheduled_at <= (SELECT now())
  FROM procrastinate_jobs INDEXED BY procrastinate_jobs_priority_idx_v1
 WHERE status = 'todo' ORDER BY priority DESC, id LIMIT ?
"""
ATTEMPTS = "SELECT id, attempts FROM procrastinate_jobs WHERE id IN (SELECT value FROM json_each(?))"
BEGIN = f"""
UPDATE procrastinate_jobs SET status = 'doing', worker_id = ? WHERE id IN (SELECT value FROM json_each(?))
RETURNING {COLUMNS}
"""  # noqa: S608  # a constant


def fetch_jobs(connection: sqlite3.Connection, *, worker_id: int, most: int, window: int) -> list[Row]:
    """Assign the first jobs that may run to a worker."""
    cursor = connection.cursor()
    cursor.row_factory = None
    locks = {lock for (lock,) in cursor.execute(LOCKS)}
    free: list[int] = []
    scanned = 0
    for job_id, lock, may_run in cursor.execute(WAITING, (window,)):
        scanned += 1
        if lock in locks:
            continue
        if lock is not None:
            locks.add(lock)
        if may_run:
            free.append(job_id)
            if len(free) == most:
                break
    if not free:
        # A job that can run may wait behind those that cannot.
        return fetch_job(connection, queues=None, worker_id=worker_id) if scanned == window else []
    fetched = free
    if len(free) > 1:
        # A job that was tried before is fetched alone, as by `bot.engine.jobs.steps.FETCH`.
        tried = {job_id for job_id, attempts in cursor.execute(ATTEMPTS, (json.dumps(free),)) if attempts}
        fetched = free[:1] if free[0] in tried else [job_id for job_id in free if job_id not in tried]
    may_have_more = scanned == window or len(free) == most or len(free) > len(fetched)
    rows = connection.execute(BEGIN, (worker_id, json.dumps(fetched))).fetchall()
    return [{**row, "more": may_have_more} for row in rows]


def end_noted(
    connection: sqlite3.Connection, *, statement: str, outcome: str, note: str, **values: object
) -> list[Row]:
    """End a job with a statement and store its note, if the worker still holds the job."""
    ended = portable.execute(connection, statement, values, has_rows=True)
    for row in ended:
        note_values = {"job_id": row["id"], "outcome": outcome, "text": note}
        portable.execute(connection, WRITE, note_values, has_rows=False)
    return ended


STEPS: dict[str, Callable[..., list[Row]]] = {
    FETCH: fetch_jobs,
    FINISH_NOTED: partial(end_noted, statement=FINISH),
    RETRY_NOTED: partial(end_noted, statement=RETRY),
}
