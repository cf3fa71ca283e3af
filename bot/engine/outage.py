"""Release the jobs that wait for an unavailable service as soon as one of them gets an answer.

Our own database is such a service too.
"""

from __future__ import annotations

import sqlite3
from typing import LiteralString

import psycopg
import structlog

from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sql.transactions import Connector

# Of the jobs that wait, which an index holds, those whose note says so. PostgreSQL would turn EXISTS into a join, and
# read all notes for it, as almost none says so; so a subquery finds each note by its job.
RELEASE: LiteralString = """
UPDATE procrastinate_jobs SET scheduled_at = NULL
 WHERE status = 'todo' AND scheduled_at IS NOT NULL
   AND (SELECT note.outcome FROM nightjar_notes AS note WHERE note.job_id = procrastinate_jobs.id) = 'away'
RETURNING id
"""

NOT_RELEASED = "could not wake the jobs that wait for a service; each retries after its own pause"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def is_outage(error: BaseException) -> bool:
    """Return whether our database did not answer, or could store nothing: the same statement may succeed later."""
    # The pool's time-out is an OperationalError as well.
    return isinstance(error, DatabaseFailure) and isinstance(
        error.__cause__, psycopg.OperationalError | psycopg.InterfaceError | sqlite3.OperationalError
    )


async def release_waiting(connector: Connector) -> None:
    """Retry every job that waits for an answer now, in all processes, instead of after its own pause.

    A job whose service is still unavailable waits again; the governor limits the pace of the others. An error of the
    database is logged and not raised: the calling job has ended, and must not run again because of the others.
    """
    try:
        released = await connector.execute_query_all_async(RELEASE)
    except DatabaseFailure as error:
        log.warning(NOT_RELEASED, error=str(error))
        return
    if released:
        log.info("jobs that waited for an answer go on", jobs=len(released))
