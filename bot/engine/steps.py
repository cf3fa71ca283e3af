"""The statements with which a job ends or goes back to the queue, each together with the job's note.

A crash between the two is impossible: either both are stored or neither is. Only the worker that holds a job ends it,
so a worker that was frozen while others took the job over changes neither. SQLite's twins of the noted statements are
in `bot.engine.sqlite_steps`.
"""

from __future__ import annotations

from typing import LiteralString

from bot.engine.notes import REPLACE

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
