"""Insert jobs that must exist only once, however often they are requested."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString, cast

from bot.engine.sql.errors import DatabaseFailure
from bot.engine.sql.portable import JSONDict
from bot.engine.sql.transactions import Connector, Statement, Steps, run_separately

ONCE = "once:"
"""Prefix of the queueing locks that stay unique for ever, finished jobs included (the index `nightjar_once`)."""

QUEUE = "default"
FIELDS = ("queue_name", "task_name", "priority", "lock", "queueing_lock", "args", "scheduled_at")
TRIES = 5
"""Rounds of inserting and searching. Another round is needed only if retention deletes a job between the two."""

IS_ONCE: LiteralString = "substr(queueing_lock, 1, 5) = 'once:'"
"""The condition of the index `nightjar_once`. A query by key must repeat it, or the database scans the whole table:
https://sqlite.org/partialindex.html#queries_using_partial_indexes."""

FIND: LiteralString = (
    "SELECT id, status, queueing_lock FROM procrastinate_jobs WHERE queueing_lock = ANY(%(keys)s) AND " + IS_ONCE  # noqa: S608  # constants
)


@dataclass(frozen=True, slots=True)
class NewJob:
    """A job to insert. `key` identifies it for ever; it is stored with `once:` in front."""

    key: str
    task: str
    args: JSONDict
    lock: str | None = None
    priority: int = 0
    scheduled_at: datetime | None = None
    queue: str = QUEUE


@dataclass(frozen=True, slots=True)
class Deferred:
    """The job of a key, and its status when it was read; `new`: this call has inserted it."""

    job_id: int
    status: str
    new: bool


async def defer_once(connector: Connector, jobs: Sequence[NewJob]) -> list[Deferred]:
    """Insert the jobs whose keys are new, in one statement; return the job of each key, in the order of `jobs`.

    See `insert_once`. Raises DatabaseFailure if nothing could be stored.
    """
    return await run_separately(connector, insert_once(jobs))


def insert_once(jobs: Sequence[NewJob]) -> Steps[list[Deferred]]:
    """Insert the jobs whose keys are new; the result has the job of each key, in the order of `jobs`.

    The database inserts them in that order and notifies workers. A key that occurs twice in `jobs` is new the first
    time. Pass a few thousand jobs at most: a statement has at most 32,766 parameters on SQLite, seven for each job
    (https://sqlite.org/limits.html#max_variable_number).
    """
    jobs_by_key: dict[str, Deferred] = {}
    new_keys: set[str] = set()
    for _ in range(TRIES):
        missing = [job for job in jobs if ONCE + job.key not in jobs_by_key]
        if not missing:
            break
        inserted = _by_key((yield _insertion(missing)), new=True)
        new_keys |= inserted.keys()
        jobs_by_key |= inserted
        missing_keys = [ONCE + job.key for job in missing if ONCE + job.key not in jobs_by_key]
        if missing_keys:
            # A job that was deleted in between is new after all.
            jobs_by_key |= _by_key((yield FIND, {"keys": missing_keys}), new=False)
    else:
        raise DatabaseFailure("jobs vanished while their keys were looked up")
    answers = []
    for job in jobs:
        key = ONCE + job.key
        deferred = jobs_by_key[key]
        answers.append(Deferred(deferred.job_id, deferred.status, key in new_keys))
        new_keys.discard(key)
    return answers


def _insertion(jobs: Sequence[NewJob]) -> Statement:
    rows = ", ".join(f"({', '.join(f'%({field}_{n})s' for field in FIELDS)})" for n in range(len(jobs)))
    statement = (
        f"INSERT INTO procrastinate_jobs ({', '.join(FIELDS)}) VALUES {rows}"  # noqa: S608  # parameters' names
        # Without a conflict target: two unique indices guard this column, ours and Procrastinate's.
        " ON CONFLICT DO NOTHING RETURNING id, status, queueing_lock"
    )
    values: dict[str, object] = {}
    for n, job in enumerate(jobs):
        row = (job.queue, job.task, job.priority, job.lock, ONCE + job.key, job.args, job.scheduled_at)
        values |= {f"{field}_{n}": value for field, value in zip(FIELDS, row, strict=True)}
    return statement, values


def _by_key(rows: list[dict[str, object]], *, new: bool) -> dict[str, Deferred]:
    return {str(row["queueing_lock"]): Deferred(cast(int, row["id"]), str(row["status"]), new) for row in rows}
