"""The statements that begin and end jobs. `bot.engine.sqlite.steps` has their counterparts for SQLite.

- `FETCH` gives several jobs to a worker at once, each under another lock.
- `PARK` puts jobs aside that wait behind another of their lock, so that a fetch reads them no more.
- A job ends, or goes back to the queue, in the statement that stores its note: either both are stored or neither is.
  Only the worker that holds a job ends it, so one that was frozen while others took the job over changes neither.
- The end of a job may also begin the next job of its lock, which saves the worker a fetch, and read what that job needs
  first.
"""

from __future__ import annotations

import json
from typing import LiteralString

from bot.engine.jobs.definitions import URGENT_PRIORITY
from bot.engine.jobs.notes import REPLACE

ANY_QUEUE = "procrastinate_any_queue_v1"
"""The channel on which every worker listens."""

# A notified worker of Procrastinate fetches any job; the ID must be present, but is not used.
WAKE = json.dumps({"type": "job_inserted", "job_id": 0})

SCANNED = "scanned"
"""The column of fetched jobs with the number of waiting jobs that the fetch has read."""

NOTIFICATIONS = "notifications"
"""The column of fetched jobs with the number of notifications before the fetch, if the database counts them."""

WINDOW = 4
"""A fetch of n jobs reads the first 4n that wait, so that its cost does not grow with a backlog."""

# A job may run when no other of its lock runs, or waits with a higher priority, or with the same one for longer.
# A job that was tried before is fetched alone: it may have crashed its process, and jobs fetched with it would count a
# lost try that never began.
# `head` and `free` both say `status = 'todo'`: if a row changed since the snapshot, PostgreSQL checks only the
# condition of the statement that locks it again
# (https://www.postgresql.org/docs/current/transaction-iso.html#XACT-READ-COMMITTED). SKIP LOCKED leaves out the jobs
# that another replica fetches at this moment. The LEFT JOIN returns a row even if nothing was fetched: its `scanned`
# says whether jobs beyond the window may be free, its `more` whether any job may be free that was not fetched.
FETCH: LiteralString = """
WITH head AS (
    SELECT id FROM procrastinate_jobs
     WHERE status = 'todo' AND NOT nightjar_parked AND (scheduled_at IS NULL OR scheduled_at <= now())
     ORDER BY priority DESC, id LIMIT %(window)s
), free AS (
    SELECT job.id, job.priority, job.attempts FROM procrastinate_jobs AS job
     WHERE job.id IN (SELECT id FROM head) AND job.status = 'todo'
       AND (job.lock IS NULL OR (
           NOT EXISTS (SELECT 1 FROM procrastinate_jobs AS other WHERE other.lock = job.lock AND other.status = 'doing')
           AND job.id = (SELECT other.id FROM procrastinate_jobs AS other
                          WHERE other.lock = job.lock AND other.status = 'todo'
                          ORDER BY other.priority DESC, other.id LIMIT 1)))
     ORDER BY job.priority DESC, job.id LIMIT %(most)s
       FOR UPDATE OF job SKIP LOCKED
), first AS (
    SELECT id, attempts FROM free ORDER BY priority DESC, id LIMIT 1
), fetched AS (
    UPDATE procrastinate_jobs AS job SET status = 'doing', worker_id = %(worker_id)s
      FROM free, first
     WHERE job.id = free.id AND (free.id = first.id OR (first.attempts = 0 AND free.attempts = 0))
    RETURNING job.id, job.status, job.task_name, job.priority, job.lock, job.queueing_lock, job.args,
              job.scheduled_at, job.queue_name, job.attempts, job.worker_id
)
SELECT fetched.*, (SELECT count(*) FROM head) AS scanned,
       (SELECT count(*) FROM head) = %(window)s OR (SELECT count(*) FROM free) = %(most)s
           OR (SELECT count(*) FROM free) > (SELECT count(*) FROM fetched) AS more
  FROM (VALUES (1)) AS one LEFT JOIN fetched ON TRUE
 ORDER BY fetched.priority DESC, fetched.id
"""
# A parked job is read again only when it becomes the first of its lock: the transaction that ends, removes or moves the
# job before it does that (`nightjar_released` in the schema). Both rows are locked, so that this transaction comes
# before or after: before, it sees the parked job; after, the row of the job before it has changed, and is left out. The
# statement waits for no row, so it has no part in a deadlock.
PARK: LiteralString = """
WITH head AS (
    SELECT id, lock, priority FROM procrastinate_jobs
     WHERE status = 'todo' AND NOT nightjar_parked AND (scheduled_at IS NULL OR scheduled_at <= now())
     ORDER BY priority DESC, id LIMIT %(window)s
), pair AS (
    SELECT head.id, head.priority, other.id AS other_id, other.status AS other_status, other.priority AS other_priority
      FROM head CROSS JOIN LATERAL (
          (SELECT id, status, priority FROM procrastinate_jobs WHERE lock = head.lock AND status = 'doing')
          UNION ALL
          (SELECT id, status, priority FROM procrastinate_jobs WHERE lock = head.lock AND status = 'todo'
            ORDER BY priority DESC, id LIMIT 1)
          LIMIT 1) AS other
     WHERE head.id <> other.id
), held AS (
    SELECT job.id FROM pair
      JOIN procrastinate_jobs AS job ON job.id = pair.id
      JOIN procrastinate_jobs AS other ON other.id = pair.other_id
     WHERE job.status = 'todo' AND job.priority = pair.priority
       AND other.status = pair.other_status AND other.priority = pair.other_priority
       FOR UPDATE OF job, other SKIP LOCKED
)
UPDATE procrastinate_jobs AS job SET nightjar_parked = TRUE FROM held WHERE job.id = held.id RETURNING job.id
"""
RETURN_UNBEGUN: LiteralString = """
UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL
 WHERE id = ANY(%(ids)s) AND status = 'doing' AND worker_id = %(worker_id)s
"""
# The end of a job was stored, but not its answer received: then nobody knows of the job that it has begun.
RETURN_UNKNOWN: LiteralString = """
UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL
 WHERE lock = %(lock)s AND status = 'doing' AND worker_id = %(worker_id)s AND NOT (id = ANY(%(known)s))
"""

# Both databases read the first jobs by the index of priorities.
NEXT_SCHEDULED: LiteralString = """
SELECT count(*) AS waiting, count(scheduled_at) AS scheduled,
       min(date_part('epoch', scheduled_at)) - date_part('epoch', now()) AS seconds
  FROM (SELECT scheduled_at FROM procrastinate_jobs
         WHERE status = 'todo' AND NOT nightjar_parked ORDER BY priority DESC, id LIMIT %(most)s) AS job
"""

FINISH: LiteralString = """
UPDATE procrastinate_jobs
   SET status = %(status)s::procrastinate_job_status, worker_id = NULL, abort_requested = FALSE, attempts = attempts + 1
 WHERE id = %(id)s AND status = 'doing' AND worker_id = %(worker_id)s RETURNING id AS ended, lock
"""
RETRY: LiteralString = """
UPDATE procrastinate_jobs
   SET status = 'todo', worker_id = NULL, abort_requested = FALSE, attempts = attempts + 1,
       scheduled_at = to_timestamp(date_part('epoch', now()) + %(wait)s),
       priority = coalesce(%(priority)s::integer, priority)
 WHERE id = %(id)s AND status = 'doing' AND worker_id = %(worker_id)s RETURNING id AS ended
"""

IS_SUCCESSOR: LiteralString = "status = 'todo' AND attempts = 0 AND scheduled_at IS NULL AND priority > " + str(
    URGENT_PRIORITY
)
"""The condition under which the end of a job begins the first job that waits under its lock.

Such a job goes before all deliveries, because it belongs to the plan of one that was begun. A job that was tried before
is fetched alone.
"""

_NOTED: LiteralString = (
    """), noted AS (
INSERT INTO nightjar_notes (job_id, at, outcome, text)
SELECT ended, date_part('epoch', now()), %(outcome)s::text, %(note)s::text FROM ended
"""
    + REPLACE
    + ")"
)
# The function is in `bot.engine.postgres.schema.ENDS`: one round trip instead of up to eleven.
FINISH_NOTED: LiteralString = """
SELECT * FROM nightjar_end_v1(
    %(id)s, %(worker_id)s, %(status)s::procrastinate_job_status, %(outcome)s, %(note)s, %(plan_key)s, %(plan_args)s,
    %(jobs)s::json, %(changes)s::json, %(begins_next)s, %(least_priority)s, %(reads)s::text[])
"""
"""Ends a job, and stores its note and what follows from it: new `jobs`, and `changes` of records.

With `plan`, the job becomes that of a plan. Raises `Outdated`, and stores nothing, if a change is. Returns no row if
another worker has taken the job over; else a row with the columns of the successor or NULLs. Two more columns have what
the successor needs first: `records` those with the keys `reads`, and `effects` the result of
`bot.engine.jobs.store.OF_HANDLER` if it is a conclusion; NULL if there are none. No statement follows it in its
transaction.
"""
RETRY_NOTED: LiteralString = "WITH ended AS (" + RETRY + _NOTED + " SELECT ended FROM ended"  # noqa: S608  # constants
