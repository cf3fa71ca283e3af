"""SQLite's counterparts of the statements in `bot.engine.jobs.steps`: its statements write to one table only."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from bot.engine.changes import RecordChange
from bot.engine.jobs.definitions import CONCLUDE
from bot.engine.jobs.notes import WRITE
from bot.engine.jobs.once import ONCE, NewJob, insert_once
from bot.engine.jobs.steps import (
    FETCH,
    FINISH,
    FINISH_NOTED,
    IS_SUCCESSOR,
    NEXT_SCHEDULED,
    PARK,
    RETRY,
    RETRY_NOTED,
    SCANNED,
)
from bot.engine.jobs.store import OF_HANDLER
from bot.engine.records import GET_SOME
from bot.engine.sql import portable
from bot.engine.sql.portable import Row
from bot.engine.sql.transactions import Steps
from bot.engine.sqlite.queries import COLUMNS

LOCKS = "SELECT lock FROM procrastinate_jobs WHERE status = 'doing' AND lock IS NOT NULL"
# In the order of the index, so the first job of a lock is the one that may run. INDEXED BY is an error if that changes.
WAITING = """
SELECT id, lock, scheduled_at IS NULL OR scheduled_at <= (SELECT now())
  FROM procrastinate_jobs INDEXED BY nightjar_ready
 WHERE status = 'todo' AND NOT nightjar_parked ORDER BY priority DESC, id
"""
# `bot.engine.jobs.steps.PARK`, without its row locks: nothing else is written meanwhile.
PARK_JOBS = """
UPDATE procrastinate_jobs SET nightjar_parked = 1 WHERE id IN (
    SELECT job.id
      FROM (SELECT id, lock FROM procrastinate_jobs INDEXED BY nightjar_ready
             WHERE status = 'todo' AND NOT nightjar_parked
               AND (scheduled_at IS NULL OR scheduled_at <= (SELECT now()))
             ORDER BY priority DESC, id LIMIT ?) AS job
     WHERE job.lock IS NOT NULL AND (
           EXISTS (SELECT 1 FROM procrastinate_jobs AS other WHERE other.lock = job.lock AND other.status = 'doing')
           OR job.id <> (SELECT other.id FROM procrastinate_jobs AS other
                          WHERE other.lock = job.lock AND other.status = 'todo'
                          ORDER BY other.priority DESC, other.id LIMIT 1)))
RETURNING id
"""
# By itself, SQLite would sort all waiting jobs.
NEXT_BY_PRIORITY = NEXT_SCHEDULED.replace("procrastinate_jobs", "procrastinate_jobs INDEXED BY nightjar_ready")
ATTEMPTS = "SELECT id, attempts FROM procrastinate_jobs WHERE id IN (SELECT value FROM json_each(?))"
BEGIN = f"""
UPDATE procrastinate_jobs SET status = 'doing', worker_id = ? WHERE id IN (SELECT value FROM json_each(?))
RETURNING {COLUMNS}
"""  # noqa: S608  # a constant
BEGIN_NEXT = f"""
UPDATE procrastinate_jobs SET status = 'doing', worker_id = %(worker_id)s
 WHERE id = (SELECT id FROM procrastinate_jobs
              WHERE lock = %(lock)s AND status = 'todo' ORDER BY priority DESC, id LIMIT 1)
   AND {IS_SUCCESSOR}
RETURNING {COLUMNS}
"""  # noqa: S608  # constants
BECOME_PLAN = """
UPDATE procrastinate_jobs SET task_name = 'handle', args = %(args)s, queueing_lock = %(key)s WHERE id = %(id)s
"""
"""Turns the job of a delivery into that of its only plan, which was made at once."""
NO_SUCCESSOR: list[Row] = [{"id": None}]


def fetch_jobs(connection: sqlite3.Connection, *, worker_id: int, most: int, window: int) -> list[Row]:
    """Assign the first jobs that may run to a worker."""
    cursor = connection.cursor()
    cursor.row_factory = None
    locks = {lock for (lock,) in cursor.execute(LOCKS)}
    free: list[int] = []
    scanned = 0
    for job_id, lock, may_run in cursor.execute(WAITING):
        scanned += may_run
        if lock not in locks:
            if lock is not None:
                locks.add(lock)
            if may_run:
                free.append(job_id)
        if len(free) == most or scanned == window:
            break
    if not free:
        return [{"id": None, SCANNED: scanned, "more": scanned == window}]
    fetched = free
    if len(free) > 1:
        # A job that was tried before is fetched alone, as by `bot.engine.jobs.steps.FETCH`.
        tried = {job_id for job_id, attempts in cursor.execute(ATTEMPTS, (json.dumps(free),)) if attempts}
        fetched = free[:1] if free[0] in tried else [job_id for job_id in free if job_id not in tried]
    may_have_more = scanned == window or len(free) == most or len(free) > len(fetched)
    rows = connection.execute(BEGIN, (worker_id, json.dumps(fetched))).fetchall()
    return [{**row, "more": may_have_more} for row in rows]


def park_jobs(connection: sqlite3.Connection, *, window: int) -> list[Row]:
    """Park the first waiting jobs that another of their lock goes before; return them."""
    return connection.execute(PARK_JOBS, (window,)).fetchall()


def next_scheduled(connection: sqlite3.Connection, *, most: int) -> list[Row]:
    """Return how many of the first jobs wait, how many of them for a time, and the seconds until the first time."""
    return portable.execute(connection, NEXT_BY_PRIORITY, {"most": most}, has_rows=True)


def end_noted(
    connection: sqlite3.Connection, *, statement: str, outcome: str, note: str, **values: object
) -> list[Row]:
    """End a job with a statement and store its note, if the worker still holds the job."""
    ended = portable.execute(connection, statement, values, has_rows=True)
    for row in ended:
        note_values = {"job_id": row["ended"], "outcome": outcome, "text": note}
        portable.execute(connection, WRITE, note_values, has_rows=False)
    return ended


def finish_noted(
    connection: sqlite3.Connection,
    *,
    begins_next: bool,
    worker_id: int,
    reads: Sequence[str],
    plan: NewJob | None = None,
    jobs: Sequence[NewJob] = (),
    changes: Sequence[RecordChange] = (),
    **values: Any,
) -> list[Row]:
    """End a job like `end_noted` with what follows from it; with `begins_next`, also begin its successor.

    Returns what `FINISH_NOTED` does.
    """
    execute = partial(portable.execute, connection)
    if jobs:
        # Before the job ends: they go before the next delivery of its lock, which stays parked. The caller rolls back
        # if another worker has taken the job over.
        _run(connection, insert_once(jobs))
    ended = end_noted(connection, statement=FINISH, worker_id=worker_id, **values)
    if not ended:
        return []
    if plan is not None:
        become = {"id": values["id"], "args": plan.args, "key": ONCE + plan.key}
        execute(BECOME_PLAN, become, has_rows=False)
    for change in changes:
        _run(connection, change.steps())
    if not begins_next:
        return NO_SUCCESSOR
    begun = execute(BEGIN_NEXT, {"worker_id": worker_id, "lock": ended[0]["lock"]}, has_rows=True)
    if not begun:
        return NO_SUCCESSOR
    (successor,) = begun
    records = execute(GET_SOME, {"keys": reads}, has_rows=True) if reads else None
    effects, args = None, successor["args"]
    if successor["task_name"] == CONCLUDE and isinstance(args, dict):  # it may be damaged
        effects = execute(OF_HANDLER, {"guid": args.get("guid"), "handler": args.get("handler")}, has_rows=True)
    return [{**successor, "records": records, "effects": effects}]


def _run(connection: sqlite3.Connection, steps: Steps[Any]) -> None:
    """Run the statements of a part of a transaction."""
    rows: Any = None  # with which a generator begins
    with contextlib.suppress(StopIteration):
        while True:
            query, values = steps.send(rows)
            rows = portable.execute(connection, query, values, has_rows=False)


STEPS: dict[str, Callable[..., list[Row]]] = {
    FETCH: fetch_jobs,
    PARK: park_jobs,
    NEXT_SCHEDULED: next_scheduled,
    FINISH_NOTED: finish_noted,
    RETRY_NOTED: partial(end_noted, statement=RETRY),
}
