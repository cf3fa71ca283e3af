"""Answer those of Procrastinate's named queries that list and count jobs, from SQLite."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial

from bot.engine.sql.portable import Row, stored
from bot.engine.sqlite.queries import COLUMNS

FILTERS = frozenset({"id", "queue_name", "task_name", "status", "lock", "queueing_lock", "worker_id"})


def list_jobs(connection: sqlite3.Connection, **filters: object) -> list[Row]:
    """Return the jobs whose columns have these values; None matches any value."""
    condition, values = _where(filters)
    return connection.execute(
        f"SELECT {COLUMNS}, abort_requested FROM procrastinate_jobs WHERE {condition} ORDER BY id",  # noqa: S608
        values,
    ).fetchall()


def count_jobs_status(connection: sqlite3.Connection) -> list[Row]:
    """Return how many jobs have each status."""
    return connection.execute("SELECT count(*) AS count, status FROM procrastinate_jobs GROUP BY status").fetchall()


def list_jobs_to_abort(connection: sqlite3.Connection, **filters: object) -> list[Row]:
    """Return the running jobs that were asked to stop."""
    condition, values = _where(filters)
    return connection.execute(
        f"SELECT id FROM procrastinate_jobs WHERE status = 'doing' AND abort_requested AND {condition}",  # noqa: S608
        values,
    ).fetchall()


def count_by(column: str, connection: sqlite3.Connection, **filters: object) -> list[Row]:
    """Return the number of jobs for each value of a column, in total and by status."""
    condition, values = _where(filters)
    rows: list[Row] = connection.execute(
        f"SELECT {column} AS name, status, count(*) AS count FROM procrastinate_jobs"  # noqa: S608
        f" WHERE {column} IS NOT NULL AND {condition} GROUP BY name, status ORDER BY name",
        values,
    ).fetchall()
    stats: dict[object, dict[object, int]] = {}
    for row in rows:
        stats.setdefault(row["name"], {})[row["status"]] = int(str(row["count"]))
    return [{"name": name, "jobs_count": sum(counts.values()), "stats": counts} for name, counts in stats.items()]


def _where(filters: dict[str, object]) -> tuple[str, dict[str, object]]:
    values = {column: stored(value) for column, value in filters.items() if value is not None}
    if unknown := values.keys() - FILTERS:
        raise ValueError(f"jobs cannot be filtered by {sorted(unknown)}")
    return " AND ".join(f"{column} = :{column}" for column in values) or "TRUE", dict(values)


LISTS: dict[str, Callable[..., list[Row]]] = {
    "list_jobs": list_jobs,
    "count_jobs_status": count_jobs_status,
    "list_jobs_to_abort": list_jobs_to_abort,
    "list_queues": partial(count_by, "queue_name"),
    "list_tasks": partial(count_by, "task_name"),
    "list_locks": partial(count_by, "lock"),
}
