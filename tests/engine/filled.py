"""A database with some weeks of data, and every statement that runs on it."""

from __future__ import annotations

import contextlib
import json
import re
import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

from bot.engine.sqlite.connector import SqliteConnector

JOBS = 20_000

# Each delivery has its own job, one plan and one effect, all ended. A tenth of the deliveries wait until tomorrow, as
# many wait for a GitHub limit, and a few have failed.
FILL = """
INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args, status, scheduled_at)
SELECT 'default', task, 0, 'pr:2#' || n, 'once:' || task || ':old-' || n,
       {args},
       CASE WHEN n % 10 = 0 AND task = 'deliver' THEN 'todo' WHEN n % 500 = 1 THEN 'failed' ELSE 'succeeded' END{cast},
       {tomorrow}
  FROM {numbers} CROSS JOIN (SELECT 'deliver' AS task UNION ALL SELECT 'handle' UNION ALL SELECT 'effect') AS tasks;
INSERT INTO procrastinate_events (job_id, type, at) SELECT id, {deferred}, {now} FROM procrastinate_jobs;
INSERT INTO procrastinate_events (job_id, type, at) SELECT id, {ended}, {now} FROM procrastinate_jobs
 WHERE status = 'succeeded';
INSERT INTO nightjar_notes (job_id, at, outcome, text) SELECT id, 0, 'routed', '{empty}' FROM procrastinate_jobs;
INSERT INTO nightjar_inbox (id, guid, event, lock, received_at, body)
SELECT id, 'inbox-' || id, 'push', lock, 1.0, '{empty}' FROM procrastinate_jobs WHERE task_name = 'deliver';
INSERT INTO nightjar_records (key, value, version, at, expires_at)
SELECT 'head:2:' || n, '{empty}', 1, 0, {later} + n FROM {numbers};
"""
ON_SQLITE = {
    "args": "json_object('guid', 'old-' || n, 'event', 'push', 'received_at', 1.0, 'handler', 'h',"
    " 'plan_job', 1, 'target', 't', 'effect', json_object(), 'conclusion', 0)",
    "cast": "",
    "tomorrow": "CASE WHEN n % 10 = 0 AND task = 'deliver' THEN unixepoch() + 86400.0 END",
    "numbers": f"(WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < {JOBS // 3})"
    " SELECT n FROM counted) AS numbers",
    "deferred": "'deferred'",
    "ended": "'succeeded'",
    "now": "unixepoch()",
    "later": "unixepoch() + 86400.0",
    "empty": "{}",
}
ON_POSTGRES = {
    **ON_SQLITE,
    "args": "jsonb_build_object('guid', 'old-' || n, 'event', 'push', 'received_at', 1.0, 'handler', 'h',"
    " 'plan_job', 1, 'target', 't', 'effect', jsonb_build_object(), 'conclusion', 0)",
    "cast": "::procrastinate_job_status",
    "tomorrow": "CASE WHEN n % 10 = 0 AND task = 'deliver' THEN now() + interval '1 day' END",
    "numbers": f"generate_series(1, {JOBS // 3}) AS n",
    "deferred": "'deferred'::procrastinate_job_event_type",
    "ended": "'succeeded'::procrastinate_job_event_type",
    "now": "now()",
    "later": "date_part('epoch', now()) + 86400.0",
}

TABLES = ("procrastinate_jobs", "procrastinate_events", "nightjar_notes", "nightjar_inbox", "nightjar_records")
"""The tables that grow with every delivery."""

EXPLAINING = {
    "session_preload_libraries": "auto_explain",
    "auto_explain.log_min_duration": "0",
    "auto_explain.log_nested_statements": "on",
    "auto_explain.log_format": "json",
    "log_min_messages": "log",
    "log_line_prefix": "@@@",
}
"""Settings with which a server logs the plan of every statement, also within functions
(https://www.postgresql.org/docs/current/auto-explain.html)."""


def fill_sqlite(path: Path) -> None:
    """Fill the file of an open database."""
    with contextlib.closing(SqliteConnector(path)._connect([])) as connection:
        connection.execute("PRAGMA synchronous = OFF")
        connection.executescript(FILL.format(**ON_SQLITE))


def fill_postgres(url: str) -> None:
    """Fill a database, and update its statistics, as autovacuum does within a minute."""
    with psycopg.connect(url, autocommit=True) as connection:
        connection.execute(FILL.format(**ON_POSTGRES).encode())
        connection.execute("ANALYZE")


class Traced:
    """The statements that all connections ran on a SQLite file, with their values."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._path, self.statements = path, list[str]()
        connect = sqlite3.connect

        def traced(database: Any, *args: Any, **kwargs: Any) -> sqlite3.Connection:
            connection: sqlite3.Connection = connect(database, *args, **kwargs)
            if str(database) == str(path):
                connection.set_trace_callback(self.statements.append)
            return connection

        monkeypatch.setattr(sqlite3, "connect", traced)

    def scans(self) -> Iterator[tuple[str, str]]:
        """Yield each step of a plan that reads a whole table or index, with its statement, once per kind."""
        kinds = {re.sub(r"'[^']*'|\d+", "", text): text for text in self.statements}
        connection = SqliteConnector(self._path)._connect([])
        try:
            for text in kinds.values():
                if text.startswith(("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")):
                    for row in connection.execute(f"EXPLAIN QUERY PLAN {text}"):
                        if str(row["detail"]).startswith("SCAN"):
                            yield str(row["detail"]), text
        finally:
            connection.close()


def postgres_scans(logged: str) -> Iterator[tuple[str, str]]:
    """Yield each node of the plans in a server's log that reads a whole table, with its statement."""
    for entry in logged.split("@@@"):
        _, separator, plan = entry.partition("plan:\n")
        if separator:
            explained = json.loads(plan)
            for node in _nodes(explained["Plan"]):
                if node["Node Type"] == "Seq Scan" and node.get("Relation Name") in TABLES:
                    yield node["Relation Name"], explained["Query Text"]


def _nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from _nodes(inner)
