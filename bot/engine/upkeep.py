"""Maintain the table of jobs: return jobs of dead workers to the queue, and remove jobs that ended long ago.

Every statement is atomic and safe to run by several replicas at once.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import time
from typing import LiteralString, cast

from bot.engine.jobs.definitions import DELIVERY_PRIORITY, URGENT_PRIORITY
from bot.engine.sql.transactions import Connector

WORKERS: LiteralString = """
SELECT worker.id, date_part('epoch', now()) - date_part('epoch', worker.last_heartbeat) AS silent,
       (SELECT count(*) FROM procrastinate_jobs AS job WHERE job.status = 'doing' AND job.worker_id = worker.id) AS jobs
  FROM procrastinate_workers AS worker ORDER BY worker.id
"""

DONE_DAYS = 7.0
"""Longer than the three days in which GitHub may redeliver: a removed delivery could be handled twice."""

FAILED_DAYS = 30.0
"""Failed jobs stay longer, so that an operator can inspect and replay them."""

LONG_WAIT = 60.0
"""Seconds after which a delivery that no person waits for gets the priority of urgent ones."""

MOST_AT_ONCE = 250
"""The most of these deliveries at a time: about a second's work, every five seconds."""

TOLERATED = 2.0
"""Seconds by which a clock may be set back unnoticed: clocks of several machines differ by less."""

DAY = 86400.0
BATCH = 1000

# A job that was asked to stop fails instead of running again, and so does one whose queueing lock a newer job has by
# now: the index allows one of them in the queue, and one refused row would keep all others from returning.
_REQUEUE: LiteralString = """
UPDATE procrastinate_jobs AS job
   SET status = (CASE
           WHEN abort_requested OR EXISTS (
               SELECT 1 FROM procrastinate_jobs AS newer
                WHERE newer.queueing_lock = job.queueing_lock AND newer.id <> job.id
                  AND (newer.status = 'todo' OR (newer.status = 'doing' AND newer.id > job.id)))
           THEN 'failed' ELSE 'todo' END)::procrastinate_job_status,
       abort_requested = FALSE, attempts = attempts + 1, worker_id = NULL
 WHERE status = 'doing'
"""
_RETURNING: LiteralString = " RETURNING id, task_name, status, attempts"

REQUEUE_ALL: LiteralString = _REQUEUE + _RETURNING
# A job without a worker is stalled as well: Procrastinate removes silent workers by itself
# (https://github.com/procrastinate-org/procrastinate/issues/1518).
_OF_STALLED: LiteralString = """
   AND (worker_id IS NULL OR worker_id IN (
        SELECT id FROM procrastinate_workers
         WHERE last_heartbeat < to_timestamp(date_part('epoch', now()) - %(seconds)s)))
"""
REQUEUE_STALLED: LiteralString = _REQUEUE + _OF_STALLED + _RETURNING
FORGET_WORKERS: LiteralString = """
DELETE FROM procrastinate_workers WHERE last_heartbeat < to_timestamp(date_part('epoch', now()) - %(seconds)s)
"""
# For EXISTS, PostgreSQL may scan the table, because it expects a match soon.
NEEDED: LiteralString = f"""
SELECT date_part('epoch', now()) AS moment,
       (SELECT id FROM procrastinate_jobs WHERE status = 'todo' AND priority = %(plain)s
         ORDER BY priority DESC, id LIMIT 1) IS NOT NULL AS raises,
       EXISTS (SELECT 1 FROM procrastinate_workers
                WHERE last_heartbeat < to_timestamp(date_part('epoch', now()) - %(seconds)s))
       OR (SELECT count(*) FROM procrastinate_jobs WHERE status = 'doing' {_OF_STALLED}) > 0 AS requeues
"""  # noqa: S608  # constants
# The subquery reads the first rows of the primary key: the few dead workers that nobody has removed yet, and one other.
FIRST_WORKER: LiteralString = """
SELECT (SELECT id FROM procrastinate_workers
         WHERE last_heartbeat >= to_timestamp(date_part('epoch', now()) - %(seconds)s)
         ORDER BY id LIMIT 1) AS id
"""
FORGET_ALL_WORKERS: LiteralString = "DELETE FROM procrastinate_workers"

OLDEST: LiteralString = """
SELECT id, CAST(args ->> 'received_at' AS double precision) AS received_at FROM procrastinate_jobs
 WHERE status = 'todo' AND priority = %(plain)s ORDER BY id LIMIT %(most)s
"""
LET_GO_FIRST: LiteralString = """
UPDATE procrastinate_jobs SET priority = %(urgent)s WHERE id = ANY(%(ids)s) AND status = 'todo' AND priority = %(plain)s
"""

# A scheduled job waits from the time of its note, or of its arrival if it has not run yet. If that time is in the
# future, the clock was set back since, and the wait starts again now.
COUNT_ANEW: LiteralString = """
UPDATE procrastinate_jobs AS job
   SET scheduled_at = to_timestamp(date_part('epoch', now()) + date_part('epoch', job.scheduled_at) - since.at)
  FROM (SELECT waiting.id AS job_id, coalesce(note.at, CAST(waiting.args ->> 'received_at' AS double precision)) AS at
          FROM procrastinate_jobs AS waiting LEFT JOIN nightjar_notes AS note ON note.job_id = waiting.id
         WHERE waiting.status = 'todo' AND waiting.scheduled_at IS NOT NULL) AS since
 WHERE job.id = since.job_id AND since.at > date_part('epoch', now()) + %(margin)s
RETURNING id
"""
NOTE_ANEW: LiteralString = "UPDATE nightjar_notes SET at = date_part('epoch', now()) WHERE job_id = ANY(%(ids)s)"

# Start from the events that are old enough: the index `nightjar_ended` finds them without reading the others, where its
# condition is repeated, for SQLite to the letter. A job that ended, was tried again and ended again has an old event
# and a newer one. Databases of older releases also have events `scheduled`, with the moment for which the job was
# scheduled, which may be later than its end.
# PostgreSQL runs a list in ARRAY() once, and a subquery with OFFSET for each row, by its index. It would plan joins by
# statistics, and with those of an empty table it would run the list for every job.
_REMOVE_OLD: LiteralString = """
DELETE FROM procrastinate_jobs WHERE id = ANY(ARRAY(
    SELECT ended.job_id FROM procrastinate_events AS ended
     WHERE ended.at < to_timestamp(%(before)s) AND ended.type IN ('succeeded', 'failed', 'cancelled', 'aborted')
       AND NOT EXISTS (SELECT 1 FROM procrastinate_events AS later
                        WHERE later.job_id = ended.job_id AND later.type <> 'scheduled'
                          AND later.at >= to_timestamp(%(before)s) LIMIT 1 OFFSET 0)
"""
# A delivery is removed as a whole: its failed jobs can only be understood, and replayed, together with the others. The
# condition of the index `nightjar_guid` is `task_name <> 'deliver'`; a delivery that failed itself has no other jobs.
_DONE: LiteralString = """
       AND ended.type IN ('succeeded', 'cancelled')
       AND EXISTS (SELECT 1 FROM procrastinate_jobs AS job
                    WHERE job.id = ended.job_id AND job.status IN ('succeeded', 'cancelled')
                      AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs AS other
                                       WHERE other.task_name <> 'deliver'
                                         AND (other.args ->> 'guid') = (job.args ->> 'guid')
                                         AND other.status NOT IN ('succeeded', 'cancelled') LIMIT 1 OFFSET 0)
                    LIMIT 1 OFFSET 0)
     LIMIT %(batch)s)) RETURNING id
"""
_FAILED: LiteralString = """
       AND ended.type IN ('failed', 'aborted', 'cancelled')
       AND EXISTS (SELECT 1 FROM procrastinate_jobs AS job
                    WHERE job.id = ended.job_id AND job.status IN ('failed', 'aborted') LIMIT 1 OFFSET 0)
     LIMIT %(batch)s)) RETURNING id
"""
REMOVE_DONE: LiteralString = _REMOVE_OLD + _DONE
REMOVE_FAILED: LiteralString = _REMOVE_OLD + _FAILED
# A delivery with a replay stays; the condition is that of the index `nightjar_guid`. If the index were compared with a
# column, SQLite would convert all of its values; with an expression it does not (https://sqlite.org/datatype3.html).
REMOVE_IGNORED: LiteralString = """
DELETE FROM nightjar_inbox WHERE id = ANY(ARRAY(
    SELECT delivery.id FROM nightjar_inbox AS delivery
     WHERE delivery.note IS NOT NULL AND delivery.received_at < %(before)s
       AND NOT EXISTS (SELECT 1 FROM procrastinate_jobs AS job
                        WHERE job.task_name <> 'deliver'
                          AND (job.args ->> 'guid') = (delivery.guid || '') LIMIT 1 OFFSET 0)
     ORDER BY delivery.received_at LIMIT %(batch)s)) RETURNING id
"""
REMOVE_RECORDS: LiteralString = """
DELETE FROM nightjar_records WHERE key = ANY(ARRAY(
    SELECT key FROM nightjar_records WHERE expires_at < %(now)s ORDER BY expires_at LIMIT %(batch)s)) RETURNING key
"""


@dataclass(frozen=True, slots=True)
class Requeued:
    """A job whose worker died: `todo` again, or `failed` if it must not run again; `attempts` counts this one."""

    job_id: int
    task: str
    status: str
    attempts: int


async def requeue_stalled(connector: Connector, *, seconds: float) -> list[Requeued]:
    """Return to the queue the jobs of workers that were removed or have been silent for this many seconds."""
    rows = await connector.execute_query_all_async(REQUEUE_STALLED, seconds=float(seconds))
    await connector.execute_query_async(FORGET_WORKERS, seconds=float(seconds))
    return _requeued(rows)


async def requeue_all(connector: Connector) -> list[Requeued]:
    """Return every running job to the queue: for the one process that holds the database, before its worker starts."""
    rows = await connector.execute_query_all_async(REQUEUE_ALL)
    await connector.execute_query_async(FORGET_ALL_WORKERS)
    return _requeued(rows)


async def raise_oldest(connector: Connector, moment: float) -> None:
    """Give the oldest deliveries that have waited long the priority of urgent ones, so that they never starve.

    It raises few at a time, so that new urgent deliveries don't wait for many.
    """
    oldest = await connector.execute_query_all_async(OLDEST, plain=DELIVERY_PRIORITY, most=MOST_AT_ONCE)
    jobs = [row["id"] for row in oldest if row["received_at"] is not None and row["received_at"] < moment - LONG_WAIT]
    if jobs:
        values = {"urgent": URGENT_PRIORITY, "plain": DELIVERY_PRIORITY}
        await connector.execute_query_async(LET_GO_FIRST, ids=jobs, **values)


@dataclass(frozen=True, slots=True)
class NeededUpkeep:
    """The database's time in seconds since 1970, with which deadlines are compared, and what must be done now.

    `raises`: deliveries wait that no person waits for. `requeues`: a worker is silent, or a job has lost its worker.
    """

    moment: float
    raises: bool
    requeues: bool


async def needed_upkeep(connector: Connector, *, seconds: float) -> NeededUpkeep:
    """Read in one statement what must be done; a worker is silent after this many seconds without a heartbeat."""
    (row,) = await connector.execute_query_all_async(NEEDED, plain=DELIVERY_PRIORITY, seconds=float(seconds))
    return NeededUpkeep(float(cast(float, row["moment"])), bool(row["raises"]), bool(row["requeues"]))


async def restart_waits(connector: Connector) -> list[int]:
    """Restart waits that began at a time that is now in the future; return the IDs of their jobs.

    Otherwise, jobs that were scheduled while the clock was two hours ahead would wait for two more hours.
    """
    rows = await connector.execute_query_all_async(COUNT_ANEW, margin=TOLERATED)
    jobs = [cast(int, row["id"]) for row in rows]
    if jobs:
        await connector.execute_query_async(NOTE_ANEW, ids=jobs)
    return jobs


async def remove_old(
    connector: Connector,
    *,
    done_days: float = DONE_DAYS,
    failed_days: float = FAILED_DAYS,
    moment: float | None = None,
) -> int:
    """Delete jobs that ended long ago, with their notes and bodies, and deliveries without a job; return how many.

    It deletes in batches, because each deletion delays deliveries that are being stored.
    """
    removed, moment = 0, time() if moment is None else moment
    for statement, days in ((REMOVE_DONE, done_days), (REMOVE_FAILED, failed_days)):
        removed += await _remove(connector, statement, before=moment - days * DAY)
    return removed + await _remove(connector, REMOVE_IGNORED, before=moment - done_days * DAY)


async def remove_old_records(connector: Connector, moment: float | None = None) -> int:
    """Delete records whose lifetime has ended at a moment, in seconds since 1970; return how many."""
    return await _remove(connector, REMOVE_RECORDS, now=time() if moment is None else moment)


async def _remove(connector: Connector, statement: LiteralString, **values: float) -> int:
    removed = 0
    while True:
        rows = await connector.execute_query_all_async(statement, batch=BATCH, **values)
        removed += len(rows)
        if len(rows) < BATCH:
            return removed


def _requeued(rows: list[dict[str, object]]) -> list[Requeued]:
    return [
        Requeued(cast(int, row["id"]), str(row["task_name"]), str(row["status"]), cast(int, row["attempts"]))
        for row in rows
    ]


@dataclass(frozen=True, slots=True)
class WorkerState:
    """A worker: the seconds since its last heartbeat, by the database's clock, and the number of its running jobs.

    If it `counts_as_dead`, other workers take over its jobs.
    """

    worker_id: int
    silent_seconds: float
    jobs: int
    counts_as_dead: bool


async def first_worker(connector: Connector, *, seconds: float) -> int | None:
    """Return the oldest worker with a heartbeat within so many seconds; None if there is none."""
    (row,) = await connector.execute_query_all_async(FIRST_WORKER, seconds=float(seconds))
    return cast("int | None", row["id"])


async def worker_states(connector: Connector, stalled: float) -> list[WorkerState]:
    """Return all registered workers; one without a heartbeat for `stalled` seconds counts as dead."""
    rows = await connector.execute_query_all_async(WORKERS)
    silences = [max(0.0, float(row["silent"])) for row in rows]
    return [
        WorkerState(row["id"], seconds, row["jobs"], seconds > stalled)
        for row, seconds in zip(rows, silences, strict=True)
    ]
