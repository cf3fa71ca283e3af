"""The statements that begin and end jobs. `bot.engine.sqlite.steps` has their counterparts for SQLite.

- `FETCH` gives several jobs to a worker at once, each under another lock.
- A job ends, or goes back to the queue, in the statement that stores its note: either both are stored or neither is.
  Only the worker that holds a job ends it, so one that was frozen while others took the job over changes neither.
"""

from __future__ import annotations

import json
from typing import LiteralString

from bot.engine.jobs.notes import REPLACE

ANY_QUEUE = "procrastinate_any_queue_v1"
"""The channel on which every worker listens."""

# A notified worker of Procrastinate fetches any job; the ID must be present, but is not used.
WAKE = json.dumps({"type": "job_inserted", "job_id": 0})

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
     WHERE status = 'todo' AND (scheduled_at IS NULL OR scheduled_at <= now())
     ORDER BY priority DESC, id LIMIT %(window)s
), free AS (
    SELECT job.id, job.priority, job.attempts FROM procrastinate_jobs AS job
     WHERE job.id IN (SELECT id FROM head) AND job.status = 'todo'
       AND NOT EXISTS (
           SELECT 1 FROM procrastinate_jobs AS other
            WHERE other.lock = job.lock AND (other.status = 'doing' OR (other.status = 'todo' AND (
                  other.priority > job.priority OR (other.priority = job.priority AND other.id < job.id)))))
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
RETURN_UNBEGUN: LiteralString = """
UPDATE procrastinate_jobs SET status = 'todo', worker_id = NULL
 WHERE id = ANY(%(ids)s) AND status = 'doing' AND worker_id = %(worker_id)s
"""

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

_NOTED: LiteralString = (
    """), noted AS (
INSERT INTO nightjar_notes (job_id, at, outcome, text)
SELECT id, date_part('epoch', now()), %(outcome)s::text, %(note)s::text FROM ended
"""  # noqa: S608  # constants
    + REPLACE
    + ") SELECT id FROM ended"
)
FINISH_NOTED: LiteralString = "WITH ended AS (" + FINISH + _NOTED
RETRY_NOTED: LiteralString = "WITH ended AS (" + RETRY + _NOTED
