"""Work that waits for a service that gave no answer: all of it goes on as soon as one job has had an answer."""

from __future__ import annotations

from typing import LiteralString

import structlog
from procrastinate.connector import BaseAsyncConnector

# Of the jobs that wait, which an index holds, those whose note says so; a note is found by its job.
RELEASE: LiteralString = """
UPDATE procrastinate_jobs SET scheduled_at = NULL
 WHERE status = 'todo' AND scheduled_at IS NOT NULL
   AND EXISTS (SELECT 1 FROM nightjar_notes AS note
                WHERE note.job_id = procrastinate_jobs.id AND note.outcome = 'away')
RETURNING id
"""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


async def release_waiting(connector: BaseAsyncConnector) -> None:
    """Let every job that waits for an answer be tried now, in all processes, instead of after its own pause.

    A job whose service is still away waits again. How fast the others go is the governor's affair.
    """
    released = await connector.execute_query_all_async(RELEASE)
    if released:
        log.info("jobs that waited for an answer go on", jobs=len(released))
