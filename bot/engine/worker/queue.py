"""The queue of Procrastinate: which tasks its jobs run, and when a job runs again."""

from __future__ import annotations

import asyncio
import datetime

from procrastinate import App, BaseRetryStrategy, RetryDecision
from procrastinate.jobs import Job

from bot.engine.postgres.connector import PostgresConnector
from bot.engine.processor import JobObserver
from bot.engine.retry import Failed, RunAgain, unnoted_wait
from bot.engine.sql.transactions import Connector
from bot.engine.sqlite.connector import SqliteConnector
from bot.engine.worker.tasks import Task, fail_unreadable


def create_queue(connector: SqliteConnector | PostgresConnector) -> App:
    """Return the queue on a database, which may be opened later."""
    return App(connector=connector)


def register(app: App, name: str, task: Task, connector: Connector, observer: JobObserver) -> None:
    """Let the jobs of a name run `task`; a job whose stored form cannot be read fails."""
    readable = fail_unreadable(name, task, connector, observer)
    app.task(name=name, retry=EngineRetry(), pass_context=True)(readable)


class EngineRetry(BaseRetryStrategy):
    """Translate a task's error into Procrastinate's decision. The task has already decided: only `Failed` is final."""

    def get_retry_decision(self, *, exception: BaseException, job: Job) -> RetryDecision | None:
        """Return when the job runs again and with which priority, or None to leave it failed."""
        match exception:
            case Failed():
                return None
            case RunAgain():
                return RetryDecision(retry_at=_from_now(exception.seconds), priority=exception.priority)
            case asyncio.CancelledError():
                # The worker is being stopped and could not wait any longer. The next worker runs the job again.
                return RetryDecision()
            case _:
                # An error outside the try itself, such as a note that could not be stored, does not count against the
                # job, so it always runs again.
                return RetryDecision(retry_at=_from_now(unnoted_wait(job.attempts)))


def _from_now(seconds: float) -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=seconds)
