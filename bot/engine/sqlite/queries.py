"""Answer Procrastinate 3.10's named queries from SQLite, as its PostgreSQL functions answer them.

Every function takes the connection and the arguments by the names they have in `procrastinate/sql/queries.sql`, runs
within a transaction and returns rows.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from datetime import datetime

from procrastinate.types import JobToDefer

from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sql.portable import JSONDict, Row, Value, dumps, stored
from bot.engine.sql.queueing_lock import DuplicateJob

COLUMNS = "id, status, task_name, priority, lock, queueing_lock, args, scheduled_at, queue_name, attempts, worker_id"
NO_JOB: Row = dict.fromkeys(COLUMNS.split(", "))
HOUR = 3600.0

INSERT_JOB = """
INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args, scheduled_at)
VALUES (?, ?, ?, ?, ?, ?, ?) RETURNING id
"""

# A job may run if no running job holds its lock, and no waiting job of that lock goes before it: by priority, then by
# age. The scan has that order, so it ends at the first job that may run.
# INDEXED BY holds SQLite to the index in that order, and is an error if the index is changed
# (https://sqlite.org/lang_indexedby.html). `(SELECT now())` runs once for the statement, not for each row.
FETCH_JOB = f"""
UPDATE procrastinate_jobs SET status = 'doing', worker_id = :worker_id WHERE id = (
    SELECT job.id FROM procrastinate_jobs AS job INDEXED BY procrastinate_jobs_priority_idx_v1
     WHERE job.status = 'todo'
       AND (job.scheduled_at IS NULL OR job.scheduled_at <= (SELECT now()))
       AND (:queues IS NULL OR job.queue_name IN (SELECT value FROM json_each(:queues)))
       AND (job.lock IS NULL OR (
            job.lock NOT IN (SELECT lock FROM procrastinate_jobs WHERE status = 'doing' AND lock IS NOT NULL)
            AND job.id = (SELECT first.id FROM procrastinate_jobs AS first
                           WHERE first.lock = job.lock AND first.status = 'todo'
                           ORDER BY first.priority DESC, first.id LIMIT 1)))
     ORDER BY job.priority DESC, job.id LIMIT 1)
RETURNING {COLUMNS}
"""  # noqa: S608  # built from constants

STALLED = f"""
SELECT {COLUMNS} FROM procrastinate_jobs
 WHERE status = 'doing' AND (:queue IS NULL OR queue_name = :queue) AND (:task_name IS NULL OR task_name = :task_name)
"""  # noqa: S608  # built from constants


def defer_jobs(connection: sqlite3.Connection, jobs: Iterable[JobToDefer]) -> list[Row]:
    """Insert jobs: all, or none."""
    return [{"id": _insert(connection, job)} for job in jobs]


def _insert(connection: sqlite3.Connection, job: JobToDefer) -> object:
    try:
        (inserted,) = connection.execute(INSERT_JOB, [stored(value) for value in job]).fetchall()
    except sqlite3.IntegrityError as error:
        if "procrastinate_jobs.queueing_lock" not in str(error):
            raise
        raise DuplicateJob(job.queueing_lock) from error
    job_id: object = inserted["id"]
    return job_id


def defer_periodic_job(
    connection: sqlite3.Connection,
    *,
    queue: str,
    lock: str | None,
    queueing_lock: str | None,
    task_name: str,
    priority: int,
    periodic_id: str,
    defer_timestamp: int,
    args: JSONDict,
) -> list[Row]:
    """Insert the job of one tick unless another worker has done so, and forget earlier ticks."""
    key = {"task_name": task_name, "periodic_id": periodic_id, "tick": defer_timestamp}
    new = connection.execute(
        "INSERT INTO procrastinate_periodic_defers (task_name, periodic_id, defer_timestamp)"
        " VALUES (:task_name, :periodic_id, :tick) ON CONFLICT DO NOTHING RETURNING id",
        key,
    ).fetchall()
    if not new:
        return [{"id": None}]
    job_id = _insert(connection, JobToDefer(queue, task_name, priority, lock, queueing_lock, args, None))
    connection.execute("UPDATE procrastinate_periodic_defers SET job_id = ? WHERE id = ?", (job_id, new[0]["id"]))
    connection.execute(
        "DELETE FROM procrastinate_periodic_defers"
        # Like Procrastinate. A worker whose clock lags may insert such a tick again; the key of a timer's job makes
        # that harmless (`bot.engine.worker.timers`).
        " WHERE task_name = :task_name AND periodic_id = :periodic_id AND defer_timestamp < :tick",
        key,
    )
    return [{"id": job_id}]


def fetch_job(connection: sqlite3.Connection, *, queues: Iterable[str] | None, worker_id: int) -> list[Row]:
    """Assign the first job that may run to a worker."""
    queue_list = None if queues is None else dumps(list(queues))
    arguments: dict[str, Value] = {"worker_id": worker_id, "queues": queue_list}
    return connection.execute(FETCH_JOB, arguments).fetchall() or [NO_JOB]


def finish_job(connection: sqlite3.Connection, *, job_id: int, status: str, delete_job: bool) -> list[Row]:
    """End a job that waits or runs."""
    if status not in ("succeeded", "failed", "aborted"):
        raise DatabaseFailure(f"a job cannot end as {status!r} (job id: {job_id})")
    if delete_job:
        change = "DELETE FROM procrastinate_jobs"
    else:
        change = (
            "UPDATE procrastinate_jobs SET status = :status, abort_requested = 0, worker_id = NULL,"
            # To SQLite a comparison is 0 or 1: a job that only waited has had no attempt.
            " attempts = attempts + (status = 'doing')"
        )
    ended = connection.execute(
        f"{change} WHERE id = :job_id AND status IN ('todo', 'doing')",
        {"job_id": job_id, "status": status},
    )
    # The errors have the texts of Procrastinate's PostgreSQL functions.
    if ended.rowcount != 1:
        raise DatabaseFailure(f'Job was not found or not in "doing" or "todo" status (job id: {job_id})')
    return []


def cancel_job(connection: sqlite3.Connection, *, job_id: int, abort: bool, delete_job: bool) -> list[Row]:
    """Cancel a waiting job; with `abort`, ask a running job to stop."""
    changes = []
    if delete_job:
        changes.append("DELETE FROM procrastinate_jobs WHERE id = ? AND status = 'todo' RETURNING id")
    if abort:
        changes.append(
            "UPDATE procrastinate_jobs SET abort_requested = 1,"
            " status = CASE status WHEN 'todo' THEN 'cancelled' ELSE status END"
            " WHERE id = ? AND status IN ('todo', 'doing') RETURNING id"
        )
    else:
        changes.append(
            "UPDATE procrastinate_jobs SET status = 'cancelled' WHERE id = ? AND status = 'todo' RETURNING id"
        )
    for change in changes:
        if rows := connection.execute(change, (job_id,)).fetchall():
            return rows
    return [{"id": None}]


def retry_job(
    connection: sqlite3.Connection,
    *,
    job_id: int,
    retry_at: datetime,
    new_priority: int | None,
    new_queue_name: str | None,
    new_lock: str | None,
) -> list[Row]:
    """Return a running or failed job to the queue; one that was asked to stop fails instead."""
    stopped = connection.execute(
        "UPDATE procrastinate_jobs SET status = 'failed', worker_id = NULL"
        " WHERE id = ? AND status = 'doing' AND abort_requested",
        (job_id,),
    )
    if stopped.rowcount:
        return []
    retried = connection.execute(
        "UPDATE procrastinate_jobs SET status = 'todo', attempts = attempts + 1, worker_id = NULL, scheduled_at = ?,"
        " priority = coalesce(?, priority), queue_name = coalesce(?, queue_name), lock = coalesce(?, lock)"
        " WHERE id = ? AND status IN ('doing', 'failed')",
        [stored(value) for value in (retry_at, new_priority, new_queue_name, new_lock, job_id)],
    )
    if retried.rowcount != 1:
        raise DatabaseFailure(f"Job was not found or has an invalid status to retry (job id: {job_id})")
    return []


def select_stalled_jobs_by_started(
    connection: sqlite3.Connection, *, queue: str | None, task_name: str | None, nb_seconds: float
) -> list[Row]:
    """Return the running jobs that started long ago, of those that an older release began: later ones have no event."""
    return connection.execute(
        f"{STALLED} AND id IN (SELECT job_id FROM procrastinate_events WHERE type = 'started'"  # noqa: S608  # a constant
        " GROUP BY job_id HAVING max(at) < (SELECT now()) - :seconds)",
        {"queue": queue, "task_name": task_name, "seconds": nb_seconds},
    ).fetchall()


def select_stalled_jobs_by_heartbeat(
    connection: sqlite3.Connection, *, queue: str | None, task_name: str | None, seconds_since_heartbeat: float
) -> list[Row]:
    """Return the running jobs whose worker was removed or is silent."""
    return connection.execute(
        # Jobs without a worker too: Procrastinate removes silent workers, and their jobs would stay `doing` for ever
        # (https://github.com/procrastinate-org/procrastinate/issues/1518).
        f"{STALLED} AND (worker_id IS NULL OR worker_id IN"  # noqa: S608  # a constant
        " (SELECT id FROM procrastinate_workers WHERE last_heartbeat < (SELECT now()) - :seconds))",
        {"queue": queue, "task_name": task_name, "seconds": seconds_since_heartbeat},
    ).fetchall()


def delete_old_jobs(
    connection: sqlite3.Connection, *, nb_hours: float, queue: str | None, statuses: list[str]
) -> list[Row]:
    """Delete jobs that ended long ago."""
    connection.execute(
        "DELETE FROM procrastinate_jobs WHERE status IN (SELECT value FROM json_each(:statuses))"
        " AND (:queue IS NULL OR queue_name = :queue)"
        " AND (SELECT max(at) FROM procrastinate_events WHERE job_id = procrastinate_jobs.id)"
        " < (SELECT now()) - :seconds",
        {"statuses": stored(statuses), "queue": queue, "seconds": nb_hours * HOUR},
    )
    return []


def get_job_status(connection: sqlite3.Connection, *, job_id: int) -> list[Row]:
    """Return a job's status."""
    return connection.execute("SELECT status FROM procrastinate_jobs WHERE id = ?", (job_id,)).fetchall()


def check_connection(connection: sqlite3.Connection) -> list[Row]:
    """Return the name of the jobs' table, or None if it does not exist."""
    return connection.execute(
        "SELECT max(name) AS \"check\" FROM sqlite_schema WHERE type = 'table' AND name = 'procrastinate_jobs'"
    ).fetchall()


def register_worker(connection: sqlite3.Connection) -> list[Row]:
    """Register a worker."""
    return connection.execute(
        "INSERT INTO procrastinate_workers (last_heartbeat) VALUES (now()) RETURNING id AS worker_id"
    ).fetchall()


def unregister_worker(connection: sqlite3.Connection, *, worker_id: int) -> list[Row]:
    """Unregister a worker; its running jobs then have no worker."""
    connection.execute("DELETE FROM procrastinate_workers WHERE id = ?", (worker_id,))
    return []


def update_heartbeat(connection: sqlite3.Connection, *, worker_id: int) -> list[Row]:
    """Note that a worker is alive."""
    connection.execute("UPDATE procrastinate_workers SET last_heartbeat = now() WHERE id = ?", (worker_id,))
    return []


def prune_stalled_workers(connection: sqlite3.Connection, *, seconds_since_heartbeat: float) -> list[Row]:
    """Unregister silent workers."""
    return connection.execute(
        "DELETE FROM procrastinate_workers WHERE last_heartbeat < (SELECT now()) - ? RETURNING id AS worker_id",
        (seconds_since_heartbeat,),
    ).fetchall()


CHANGES: dict[str, Callable[..., list[Row]]] = {
    function.__name__: function
    for function in (
        defer_jobs,
        defer_periodic_job,
        fetch_job,
        finish_job,
        cancel_job,
        retry_job,
        select_stalled_jobs_by_started,
        select_stalled_jobs_by_heartbeat,
        delete_old_jobs,
        get_job_status,
        check_connection,
        register_worker,
        unregister_worker,
        update_heartbeat,
        prune_stalled_workers,
    )
}
