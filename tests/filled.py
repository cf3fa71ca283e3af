"""Databases with the data of a large project's weeks: 200,000 jobs, a million results, 20,000 device jobs.

SQL creates the data in seconds. `tests/test_plans.py` lets these databases explain how they would run each statement.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import psycopg

from bot.engine.sqlite.connector import SqliteConnector

JOBS = 200_000
RUNS, TESTS = 50_000, 20
"""Runs, and tests of each. All results of a run are one row, so only the number of runs matters for plans."""
PLANS = 3
"""Jobs of each delivery: the delivery's own, one plan, one effect."""

# A tenth of the deliveries wait until tomorrow, as many wait for a limit of GitHub's, and a few have failed.
ENGINE = """
INSERT INTO procrastinate_jobs (queue_name, task_name, priority, lock, queueing_lock, args, status, scheduled_at)
SELECT 'default', task, 0, 'pr:2#' || (n / 20), 'once:' || task || ':old-' || n,
       {object}('guid', 'old-' || n, 'event', 'push', 'body', '{{}}', 'received_at', 1.0, 'handler', 'h',
                'plan_job', 1, 'target', 't', 'effect', {object}(), 'conclusion', 0),
       CASE WHEN n % 10 = 0 AND task = 'deliver' THEN 'todo' WHEN n % 500 = 1 THEN 'failed'
            ELSE 'succeeded' END{status},
       CASE WHEN n % 10 = 0 AND task = 'deliver' THEN {tomorrow} END
  FROM {deliveries} CROSS JOIN (SELECT 'deliver' AS task UNION ALL SELECT 'handle' UNION ALL SELECT 'effect') AS tasks;
INSERT INTO procrastinate_events (job_id, type, at) SELECT id, 'deferred'{type}, {now} FROM procrastinate_jobs;
INSERT INTO procrastinate_events (job_id, type, at) SELECT id, 'succeeded'{type}, {now} FROM procrastinate_jobs
 WHERE status = 'succeeded';
INSERT INTO nightjar_notes (job_id, at, outcome, text) SELECT id, 0, 'routed', '{{}}' FROM procrastinate_jobs;
INSERT INTO nightjar_inbox (id, guid, event, lock, received_at, body)
SELECT id, 'old-' || id, 'push', lock, 1.0, '' FROM procrastinate_jobs WHERE task_name = 'deliver';
INSERT INTO nightjar_writes (budget, number, at) SELECT n % 20, n, n FROM {runs};
INSERT INTO nightjar_records (key, value, version, at, expires_at)
SELECT 'head:' || (n % 50) || ':' || n, '{{}}', 1, 0, {later} + n FROM {deliveries};
INSERT INTO nightjar_device_jobs (
    id, repository_id, repository, pull_request, sha, lab, target, suites, tier, origin, requested_by_id,
    requested_by, requested_at, state, expires_at, approved_by_id, approved_by, approved_at, queued_at, attempt,
    slot, lease, old_lease, lease_expires_at, leased_at, deadline, run_id, arrived, log_url, note, ended_for,
    ended_at, shown, to_show, version, pull_queued_at)
SELECT 'job-' || n, n % 20, 'octocat/compiler', n / 20, 'sha-' || n, 'lab-' || (n % 20), 'target-' || (n % 200), 'all',
       1, 'command', n % 100, 'hubot', n, CASE WHEN n % 1000 = 0 THEN 'queued' ELSE 'done' END,
       CASE WHEN n % 1000 = 0 THEN {later} ELSE 0 END, 1, 'hubot', n, n, 1, CASE WHEN n % 1000 = 0 THEN -1 ELSE -1 END,
       'lease', '', 0, n, 0, 'run', '', '', '', '', CASE WHEN n % 1000 = 0 THEN 0 ELSE n END, 1, 1, 1,
       n
  FROM {deliveries} WHERE n % 3 = 0;
"""
# 250 targets of ten labs with four suites each, fifty runs of each; all of them are older than what tests ask for.
RESULTS = """
INSERT INTO nightjar_suites (id, repository, suite, names)
SELECT n, 'octocat/compiler', 'suite-' || n, {tests} FROM {series} WHERE n <= 40;
INSERT INTO nightjar_targets (id, repository, lab, target)
SELECT n, 'octocat/compiler', 'lab-' || (n % 10), 'target-' || n FROM {series} WHERE n <= 250;
INSERT INTO nightjar_names (suite_id, first, names) SELECT n, 0, {blob} FROM {series} WHERE n <= 40;
INSERT INTO nightjar_series (id, suite_id, target_id) SELECT n, n % 40 + 1, (n - 1) / 4 + 1 FROM {series};
INSERT INTO nightjar_runs (id, target_id, sha, run_id, suite, version, state, reason, received_at, bytes, committed_at,
                           mainline, pull_request)
SELECT n, n % 250 + 1, 'sha-' || (n / 1000), 'run-' || n, 'suite-' || (n % 40 + 1), '1',
       CASE WHEN n % 200 = 0 THEN 'refused' ELSE 'stored' END, '', n / 1000.0, 1000, n / 1000.0, {true},
       CASE WHEN n % 3 = 0 THEN n / 20 END
  FROM {runs};
INSERT INTO nightjar_columns (run_id, statuses, durations) SELECT n, {blob}, {blob} FROM {runs};
INSERT INTO nightjar_points (id, series_id, committed_at, sha, pull_request, mainline, complete, infra, linked)
SELECT n, n % 1000 + 1, n / 1000.0, 'sha-' || (n / 1000), CASE WHEN n % 3 = 0 THEN n / 20 END, n % 3 <> 0, {true}, '',
       {true}
  FROM {runs};
INSERT INTO nightjar_changes (series_id, ordinal, point_id, before, after)
SELECT n % 1000 + 1, ordinal, n, CASE WHEN n % 100 = 0 THEN 8 ELSE 1 END, 2
  FROM {runs} CROSS JOIN {ordinals};
INSERT INTO nightjar_texts (id, count, texts) SELECT n, 1, {blob} FROM {runs};
INSERT INTO nightjar_digests (digest, number) SELECT {digest}, n FROM {runs};
INSERT INTO nightjar_renames (series_id, point_id, pairs) SELECT n % 1000 + 1, n, {blob} FROM {runs} WHERE n % 10 = 0;
INSERT INTO nightjar_ancestry (repository, sha, other, is_ancestor, url, met_at)
SELECT 'octocat/compiler', 'sha-' || n, 'sha-' || (n + 1), {true}, '', 0 FROM {runs};
INSERT INTO nightjar_reports (series_id, ordinal, since, good, reported_in, reported_at, ended, ended_in, ended_at)
SELECT n % 1000 + 1, n % 50, 'sha-' || n, '', 'sha-' || n, n, CASE WHEN n % 100 = 0 THEN '' ELSE 'fixed' END, '', 0
  FROM {runs};
INSERT INTO nightjar_checks (target_id, sha, changed_at, revision, announced, over)
SELECT n % 250 + 1, 'sha-' || n, n, 1, CASE WHEN n % 200 = 0 THEN 0 ELSE 1 END, {true} FROM {runs};
INSERT INTO nightjar_commits (repository, sha, title, author)
SELECT 'octocat/compiler', 'sha-' || n, 'Fix the lowering', 'hubot' FROM {runs};
INSERT INTO nightjar_artifacts (run_id, name, bytes, sha256) SELECT n, 'log.txt', 1000, '' FROM {runs};
INSERT INTO nightjar_metrics (id, suite_id, name, unit, better) SELECT n, n, 'latency', 'ms', 'lower' FROM {series}
 WHERE n <= 40;
INSERT INTO nightjar_measurements (suite_id, ordinal, metric_id, position, digits, exponent)
SELECT n % 40 + 1, n / 40, n % 40 + 1, n / 40, 1, 0 FROM {runs};
INSERT INTO nightjar_numbers (series_id, block, run_id, numbers) SELECT n % 1000 + 1, 0, n, {blob} FROM {runs};
INSERT INTO nightjar_searched_nights (series_id, nights) SELECT n, {blob} FROM {series};
INSERT INTO nightjar_level_changes (id, repository, target_id, series_id, ordinal, metric_id, since, since_at, good,
                                    confirmed_in, confirmed_at, before, after, low, high, ended_in, ended_at)
SELECT 'change-' || n, 'octocat/compiler', n % 250 + 1, n % 1000 + 1, n % 20, n % 40 + 1, 'sha-' || n, n / 1000.0, '',
       'sha-' || n, n / 1000.0, 1.0, 2.0, 1.0, 2.0, CASE WHEN n % 10 = 0 THEN '' ELSE 'sha-0' END, 0.0
  FROM {runs};
"""
_COUNTED = (
    "(WITH RECURSIVE counted(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM counted WHERE n < {0}) SELECT n FROM counted)"
)
ON_SQLITE = {
    "object": "json_object", "status": "", "type": "", "now": "unixepoch()", "later": "unixepoch() + 86400.0",
    "tomorrow": "unixepoch() + 86400.0", "blob": "X'00'", "digest": "CAST('d' || n AS BLOB)", "true": "1",
    "deliveries": f"{_COUNTED.format(JOBS // PLANS)} AS numbers", "runs": f"{_COUNTED.format(RUNS)} AS runs",
    "series": f"{_COUNTED.format(1000)} AS numbered",
    "ordinals": "(SELECT 1 AS ordinal UNION ALL SELECT 2 UNION ALL SELECT 3) AS ordinals", "tests": str(TESTS),
}  # fmt: skip
ON_POSTGRES = {
    **ON_SQLITE, "object": "jsonb_build_object", "status": "::procrastinate_job_status",
    "type": "::procrastinate_job_event_type", "now": "now()", "later": "date_part('epoch', now()) + 86400.0",
    "tomorrow": "now() + interval '1 day'", "blob": "'\\x00'::bytea", "digest": "('d' || n)::bytea", "true": "true",
    "deliveries": f"generate_series(1, {JOBS // PLANS}) AS n", "runs": f"generate_series(1, {RUNS}) AS n",
    "series": "generate_series(1, 1000) AS n",
}  # fmt: skip

PLAIN_INDICES = """
SELECT indexname, indexdef FROM pg_indexes
 WHERE schemaname = 'public' AND indexname NOT IN (SELECT conname FROM pg_constraint)
"""


def fill_sqlite(path: Path) -> None:
    """Fill a database that has all tables."""
    with contextlib.closing(SqliteConnector(path)._connect([])) as connection:
        connection.executescript(
            "PRAGMA synchronous = OFF; PRAGMA foreign_keys = OFF; PRAGMA cache_size = -200000; BEGIN;"
            f"{(ENGINE + RESULTS).format(**ON_SQLITE)}; COMMIT"
        )


def fill_postgres(url: str) -> None:
    """Fill a database that has all tables, and update its statistics, as autovacuum does within a minute."""
    with psycopg.connect(url, autocommit=True) as connection:
        # Creating an index after all rows are inserted costs half.
        indices = connection.execute(PLAIN_INDICES).fetchall()
        connection.execute(";".join(f"DROP INDEX {name}" for name, _ in indices).encode())
        connection.execute(
            f"SET session_replication_role = replica; {(ENGINE + RESULTS).format(**ON_POSTGRES)}".encode()
        )
        connection.execute(";".join(made for _, made in indices).encode())
        connection.execute("ANALYZE")
