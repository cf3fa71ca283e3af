"""A job as a row of `nightjar_device_jobs`, and the statements that read and write them.

The table is in `bot/engine/sqlite/schema.py` and its twin. Statements repeat the conditions of partial indices, or they
would scan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, LiteralString

from nightjar_formats.strict_json import read_json

from handlers.device_tests.model import DeviceJob, DeviceJobState, FewTests, JobEnd, JobOrigin, ShownStep, Someone

_UNCHANGED: tuple[LiteralString, ...] = (
    "id",
    "repository_id",
    "repository",
    "pull_request",
    "sha",
    "lab",
    "target",
    "tier",
    "requested_at",
    "expires_at",
    "approved_at",
    "queued_at",
    "attempt",
    "slot",
    "lease",
    "old_lease",
    "lease_expires_at",
    "leased_at",
    "deadline",
    "run_id",
    "log_url",
    "note",
    "purpose",
    "outcome",
    "ended_at",
    "version",
)
"""Columns that hold the field of the same name unchanged."""
_CONVERTED: tuple[LiteralString, ...] = (
    "suites",
    "origin",
    "requested_by_id",
    "requested_by",
    "state",
    "approved_by_id",
    "approved_by",
    "arrived",
    "few_tests",
    "ended_for",
    "shown",
    "to_show",
)
"""Columns whose values are converted, or have another name than the field, or (`to_show`) are computed."""
_COLUMNS = _UNCHANGED + _CONVERTED
_NAMES: LiteralString = ", ".join(_COLUMNS)
_VALUES: LiteralString = ", ".join(f"%({name})s" for name in _COLUMNS)
_ASSIGNMENTS: LiteralString = ", ".join(f"{name} = %({name})s" for name in _COLUMNS)
_SELECT: LiteralString = f"SELECT {_NAMES} FROM nightjar_device_jobs"  # noqa: S608  # constants

# No conflict target, because two constraints may refuse a row: the id, and the index of open jobs.
INSERT: LiteralString = (
    f"INSERT INTO nightjar_device_jobs ({_NAMES}) VALUES ({_VALUES}) ON CONFLICT DO NOTHING RETURNING id"  # noqa: S608  # constants
)
# A device that has a job already is refused by the condition. On PostgreSQL, two replicas may pass it at the same
# moment; then the unique index refuses one of them.
REPLACE: LiteralString = f"""
UPDATE nightjar_device_jobs SET {_ASSIGNMENTS} WHERE id = %(id)s AND version = %(read_version)s
   AND (CAST(%(slot)s AS integer) < 0 OR NOT EXISTS (
        SELECT 1 FROM nightjar_device_jobs AS other
         WHERE other.lab = %(lab)s AND other.target = %(target)s AND other.slot = %(slot)s AND other.id <> %(id)s
           AND other.slot >= 0))
RETURNING id
"""  # noqa: S608  # constants
BY_ID: LiteralString = _SELECT + " WHERE id = %(id)s"
# The row of the same ID comes first. Each commit has few jobs, which the index `nightjar_device_jobs_commit` finds.
SAME_JOB: LiteralString = f"""
SELECT {_NAMES} FROM (
    SELECT {_NAMES}, 0 AS place FROM nightjar_device_jobs WHERE id = %(id)s
    UNION ALL
    SELECT {_NAMES}, 1 FROM nightjar_device_jobs
     WHERE sha = %(sha)s AND lab = %(lab)s AND target = %(target)s AND repository_id = %(repository_id)s
       AND pull_request = %(pull_request)s AND purpose = %(purpose)s AND state IN ('waiting', 'queued', 'leased')
       AND requested_by_id <> 0) AS same
 ORDER BY place LIMIT 1
"""  # noqa: S608  # constants
OF_PULL: LiteralString = (
    _SELECT + " WHERE repository_id = %(repository_id)s AND pull_request = %(number)s ORDER BY requested_at, id"
)
# Each pull request has few jobs: the index `nightjar_device_jobs_pull` finds them.
OPEN_OF_PULLS: LiteralString = """
SELECT pull_request, count(*) AS jobs FROM nightjar_device_jobs
 WHERE repository_id = %(repository_id)s AND pull_request = ANY(%(numbers)s)
   AND state IN ('waiting', 'queued', 'leased')
 GROUP BY pull_request
"""
# Recursion instead of DISTINCT or GROUP BY: each step finds the next value in the index, and passes over all jobs that
# have the same one. So a claim reads a few rows for each target, repository and person with queued jobs, however many
# jobs they have. Subqueries instead of joins, which PostgreSQL may run as a scan of the table. Statements about jobs
# that wait for these targets repeat the condition of the index. Without `target > ''`, SQLite would read the jobs of a
# lab, ended ones too, by another index.
_QUEUED_TARGETS: LiteralString = """
WITH RECURSIVE queued_target (name) AS (
    SELECT min(job.target) FROM nightjar_device_jobs AS job
     WHERE job.lab = %(lab)s AND job.target > '' AND job.state = 'queued'
    UNION ALL
    SELECT (SELECT min(job.target) FROM nightjar_device_jobs AS job
             WHERE job.lab = %(lab)s AND job.target > queued_target.name AND job.state = 'queued')
      FROM queued_target WHERE queued_target.name IS NOT NULL
"""
_QUEUES: LiteralString = f"""
{_QUEUED_TARGETS}), queue (target, repository) AS (
    SELECT queued_target.name,
           (SELECT min(job.repository) FROM nightjar_device_jobs AS job
             WHERE job.lab = %(lab)s AND job.target = queued_target.name AND job.state = 'queued')
      FROM queued_target WHERE queued_target.name = ANY(%(targets)s)
    UNION ALL
    SELECT queue.target,
           (SELECT min(job.repository) FROM nightjar_device_jobs AS job
             WHERE job.lab = %(lab)s AND job.target = queue.target AND job.repository > queue.repository
               AND job.state = 'queued')
      FROM queue WHERE queue.repository IS NOT NULL
)"""  # noqa: S608  # constants
QUEUES: LiteralString = f"""
{_QUEUES}
SELECT queue.target, queue.repository, -1 AS slot,
       (SELECT max(served.leased_at) FROM nightjar_device_jobs AS served
         WHERE served.lab = %(lab)s AND served.repository_id = (
               SELECT job.repository_id FROM nightjar_device_jobs AS job
                WHERE job.lab = %(lab)s AND job.target = queue.target AND job.repository = queue.repository
                  AND job.state = 'queued' LIMIT 1)) AS served_at
  FROM queue WHERE queue.repository IS NOT NULL
UNION ALL
SELECT target, '', slot, 0.0 FROM nightjar_device_jobs
 WHERE lab = %(lab)s AND target = ANY(%(targets)s) AND slot >= 0
UNION ALL
SELECT target, repository, -2, 0.0 FROM nightjar_device_jobs
 WHERE lab = %(lab)s AND target = ANY(%(targets)s) AND state = 'idle'
"""  # noqa: S608  # constants
NEXT_OF_QUEUES: LiteralString = f"""
{_QUEUES}, person (target, repository, id) AS (
    SELECT queue.target, queue.repository,
           (SELECT min(job.requested_by_id) FROM nightjar_device_jobs AS job
             WHERE job.lab = %(lab)s AND job.target = queue.target AND job.repository = queue.repository
               AND job.state = 'queued')
      FROM queue WHERE queue.repository || ' ' || queue.target = ANY(%(queues)s)
    UNION ALL
    SELECT person.target, person.repository,
           (SELECT min(job.requested_by_id) FROM nightjar_device_jobs AS job
             WHERE job.lab = %(lab)s AND job.target = person.target AND job.repository = person.repository
               AND job.requested_by_id > person.id AND job.state = 'queued')
      FROM person WHERE person.id IS NOT NULL
), head (person, id) AS (
    SELECT person.id,
           (SELECT job.id FROM nightjar_device_jobs AS job
             WHERE job.lab = %(lab)s AND job.target = person.target AND job.repository = person.repository
               AND job.requested_by_id = person.id AND job.state = 'queued'
             ORDER BY job.pull_queued_at, job.pull_request, job.requested_at DESC, job.id LIMIT 1)
      FROM person WHERE person.id IS NOT NULL
), ordered (id, served_at, pull_queued_at, pull_request, requested_at) AS (
    SELECT head.id,
           (SELECT max(served.leased_at) FROM nightjar_device_jobs AS served
             WHERE served.lab = %(lab)s AND served.requested_by_id = head.person
               AND served.repository_id = (SELECT job.repository_id FROM nightjar_device_jobs AS job
                                            WHERE job.id = head.id)),
           (SELECT job.pull_queued_at FROM nightjar_device_jobs AS job WHERE job.id = head.id),
           (SELECT job.pull_request FROM nightjar_device_jobs AS job WHERE job.id = head.id),
           (SELECT job.requested_at FROM nightjar_device_jobs AS job WHERE job.id = head.id)
      FROM head
)
{_SELECT} WHERE id = (
    SELECT ordered.id FROM ordered
     ORDER BY CASE WHEN ordered.served_at > %(since)s THEN ordered.served_at ELSE 0.0 END,
              ordered.pull_queued_at, ordered.pull_request, ordered.requested_at DESC, ordered.id LIMIT 1)
"""  # noqa: S608  # constants
# The bot requests few jobs a day, so the oldest is found among all that wait for these targets.
NEXT_IDLE: LiteralString = (
    _SELECT
    + " WHERE lab = %(lab)s AND target = ANY(%(targets)s) AND state = 'idle'"
    + " AND repository || ' ' || target = ANY(%(queues)s) ORDER BY requested_at, id LIMIT 1"
)
IS_WANTED: LiteralString = """
SELECT EXISTS (SELECT 1 FROM nightjar_device_jobs
                WHERE lab = %(lab)s AND target = %(target)s AND state = 'queued' AND queued_at >= %(since)s) AS wanted
"""
QUEUED_TARGETS: LiteralString = f"{_QUEUED_TARGETS}) SELECT name FROM queued_target WHERE name IS NOT NULL"  # noqa: S608
# The queued jobs of a target are counted in the index `nightjar_device_jobs_queue`, which has all of these columns.
JOBS_BEFORE: LiteralString = """
SELECT person.id AS person, person.jobs, person.earlier,
       (SELECT job.repository_id FROM nightjar_device_jobs AS job
         WHERE job.lab = %(lab)s AND job.target = %(target)s AND job.repository = person.repository
           AND job.state = 'queued' LIMIT 1) AS repository_id
  FROM (SELECT repository, requested_by_id AS id, count(*) AS jobs,
               count(*) FILTER (WHERE (pull_queued_at, pull_request, -requested_at, id) < (
                   SELECT own.pull_queued_at, own.pull_request, -own.requested_at, own.id
                     FROM nightjar_device_jobs AS own WHERE own.id = %(id)s)) AS earlier
          FROM nightjar_device_jobs WHERE lab = %(lab)s AND target = %(target)s AND state = 'queued'
         GROUP BY repository, requested_by_id) AS person
UNION ALL
SELECT NULL, count(*), 0, NULL FROM nightjar_device_jobs
 WHERE lab = %(lab)s AND target = %(target)s AND slot >= 0
"""
# Every target is at least ''. With this condition SQLite uses the index of open jobs, not the index of all jobs.
OF_LAB: LiteralString = _SELECT + " WHERE lab = %(lab)s AND target >= '' AND state IN ('queued', 'leased')"
# A job that is queued, or queued again, gets an expiry a day later, so the ones queued last expire last. Because the
# lab is in an expression, SQLite uses the index of expiries, not one of all jobs that the lab ever got.
QUEUED_LATELY: LiteralString = (
    _SELECT
    + " WHERE expires_at > 0 AND expires_at > %(after)s AND state = 'queued' AND lab || '' = ANY(%(labs)s)"
    + " ORDER BY expires_at"
)
OVERDUE: LiteralString = _SELECT + " WHERE expires_at > 0 AND expires_at <= %(now)s ORDER BY expires_at LIMIT %(most)s"
OPEN_TARGETS: LiteralString = """
WITH RECURSIVE open_target (name) AS (
    SELECT min(repository || ' ' || lab || ' ' || target) FROM nightjar_device_jobs WHERE expires_at > 0
    UNION ALL
    SELECT (SELECT min(job.repository || ' ' || job.lab || ' ' || job.target) FROM nightjar_device_jobs AS job
             WHERE job.repository || ' ' || job.lab || ' ' || job.target > open_target.name AND job.expires_at > 0)
      FROM open_target WHERE open_target.name IS NOT NULL
)
SELECT name FROM open_target WHERE name IS NOT NULL
"""
OPEN_OF_TARGET: LiteralString = (
    _SELECT + " WHERE repository || ' ' || lab || ' ' || target = %(name)s AND expires_at > 0 ORDER BY expires_at"
)
NEEDS_SWEEP: LiteralString = """
SELECT EXISTS (SELECT 1 FROM nightjar_device_jobs WHERE expires_at > 0) AS has_open,
       EXISTS (SELECT 1 FROM nightjar_device_jobs WHERE expires_at > 0 AND expires_at <= %(now)s)
    OR EXISTS (SELECT 1 FROM nightjar_device_jobs WHERE shown < to_show)
    OR EXISTS (SELECT 1 FROM nightjar_device_jobs WHERE ended_at > 0 AND ended_at < %(before)s) AS needed
"""
TESTED_PULL: LiteralString = """
SELECT pull_request FROM nightjar_device_jobs
 WHERE sha = %(sha)s AND lab = %(lab)s AND target = %(target)s AND repository_id = %(repository_id)s AND attempt > 0
   AND pull_request > 0
 ORDER BY requested_at DESC LIMIT 1
"""
UNSHOWN: LiteralString = _SELECT + " WHERE shown < to_show ORDER BY requested_at DESC LIMIT %(most)s"
# The signs keep SQLite from grouping by `nightjar_device_jobs_person`, which would read all jobs of a lab, not the last
# day's: https://www.sqlite.org/optoverview.html#disqualifying_where_clause_terms_using_unary_
SERVED: LiteralString = """
SELECT +repository_id AS repository_id, +requested_by_id AS requested_by_id, max(leased_at) AS at
  FROM nightjar_device_jobs
 WHERE lab = %(lab)s AND leased_at > %(since)s GROUP BY +repository_id, +requested_by_id
"""
# Requests that were refused at once use no budget. The jobs of the bot (person 0) have a budget of their own.
REQUESTS: LiteralString = """
SELECT count(*) FILTER (WHERE requested_by_id <> 0) AS everybody,
       count(*) FILTER (WHERE requested_by_id = %(person)s) AS person FROM nightjar_device_jobs
 WHERE lab = %(lab)s AND target = %(target)s AND repository_id = %(repository_id)s AND requested_at >= %(since)s
   AND ended_for NOT IN ('degraded', 'paused', 'over budget')
"""
DURATIONS: LiteralString = """
SELECT ended_at - leased_at AS seconds FROM nightjar_device_jobs
 WHERE lab = %(lab)s AND target = %(target)s AND state = 'done' AND purpose = ''
 ORDER BY ended_at DESC LIMIT 20
"""
REMOVE_OLD: LiteralString = "DELETE FROM nightjar_device_jobs WHERE ended_at > 0 AND ended_at < %(before)s RETURNING id"


def row_of_job(job: DeviceJob) -> dict[str, object]:
    """Return the values of the columns of a job's row, by column.

    `to_show` follows from the other fields. It is stored so that an index finds the jobs whose check run is outdated.
    """
    return {name: getattr(job, name) for name in _UNCHANGED} | {
        "suites": json.dumps(job.suites),
        "origin": job.origin.value,
        "requested_by_id": job.requested_by.id,
        "requested_by": job.requested_by.login,
        "state": job.state.value,
        "approved_by_id": job.approved_by.id,
        "approved_by": job.approved_by.login,
        "arrived": json.dumps(job.arrived),
        "few_tests": json.dumps(asdict(job.few_tests)),
        "ended_for": job.end.value,
        "shown": int(job.shown),
        "to_show": int(job.to_show),
    }


def job_of_row(row: Mapping[str, Any]) -> DeviceJob:
    """Return the job of a row, which must have all columns except `to_show`: the job computes it.

    Raises ValueError for an unknown state, origin, end or step, and for text that is not JSON.
    """
    return DeviceJob(
        **{name: row[name] for name in _UNCHANGED},
        suites=tuple(read_json(row["suites"])),
        origin=JobOrigin(row["origin"]),
        requested_by=Someone(row["requested_by_id"], row["requested_by"]),
        state=DeviceJobState(row["state"]),
        approved_by=Someone(row["approved_by_id"], row["approved_by"]),
        arrived=tuple(read_json(row["arrived"])),
        few_tests=_few_tests(read_json(row["few_tests"])),
        end=JobEnd(row["ended_for"]),
        shown=ShownStep(row["shown"]),
    )


def _few_tests(stored: Mapping[str, Any]) -> FewTests:
    return FewTests(**{**stored, "tests": tuple(stored.get("tests", ()))})
