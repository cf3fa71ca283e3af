"""A job as a row of `nightjar_device_jobs`, and the statements that read and write them.

The table is in `bot/engine/sqlite/schema.py` and its twin. Statements repeat the conditions of partial indices, or they
would scan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, LiteralString

from nightjar_formats.strict_json import read_json

from handlers.device_tests.model import DeviceJob, DeviceJobState, JobEnd, JobOrigin, ShownStep, Someone

_PLAIN: tuple[LiteralString, ...] = (
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
    "ended_for",
    "shown",
    "to_show",
)
"""Columns whose values are converted, or have another name than the field."""
_COLUMNS = _PLAIN + _CONVERTED
_NAMES: LiteralString = ", ".join(_COLUMNS)
_VALUES: LiteralString = ", ".join(f"%({name})s" for name in _COLUMNS)
_SETTINGS: LiteralString = ", ".join(f"{name} = %({name})s" for name in _COLUMNS)
_SELECT: LiteralString = f"SELECT {_NAMES} FROM nightjar_device_jobs"  # noqa: S608  # constants

# No conflict target, because two constraints may refuse a row: the id, and the index of open jobs.
INSERT: LiteralString = (
    f"INSERT INTO nightjar_device_jobs ({_NAMES}) VALUES ({_VALUES}) ON CONFLICT DO NOTHING RETURNING id"  # noqa: S608  # constants
)
# A device that has a job already is refused by the condition. On PostgreSQL, two replicas may pass it at the same
# moment; then the unique index refuses one of them.
REPLACE: LiteralString = f"""
UPDATE nightjar_device_jobs SET {_SETTINGS} WHERE id = %(id)s AND version = %(known)s
   AND (CAST(%(slot)s AS integer) < 0 OR NOT EXISTS (
        SELECT 1 FROM nightjar_device_jobs AS other
         WHERE other.lab = %(lab)s AND other.target = %(target)s AND other.slot = %(slot)s AND other.id <> %(id)s
           AND other.slot >= 0))
RETURNING id
"""  # noqa: S608  # constants
BY_ID: LiteralString = _SELECT + " WHERE id = %(id)s"
OF_PULL: LiteralString = (
    _SELECT + " WHERE repository_id = %(repository_id)s AND pull_request = %(number)s ORDER BY requested_at, id"
)
# Every target is at least ''. With this condition SQLite uses the index of open jobs, not the index of all jobs.
OF_LAB: LiteralString = _SELECT + " WHERE lab = %(lab)s AND target >= '' AND state IN ('queued', 'leased')"
OVERDUE: LiteralString = _SELECT + " WHERE expires_at > 0 AND expires_at <= %(now)s ORDER BY expires_at LIMIT %(most)s"
OPEN_JOBS: LiteralString = _SELECT + " WHERE expires_at > 0 ORDER BY expires_at"
TESTED_PULL: LiteralString = """
SELECT pull_request FROM nightjar_device_jobs
 WHERE sha = %(sha)s AND lab = %(lab)s AND target = %(target)s AND repository_id = %(repository_id)s AND attempt > 0
 ORDER BY requested_at DESC LIMIT 1
"""
# The condition repeats the condition of the index of open jobs.
VERSIONS_OF_LABS: LiteralString = """
SELECT lab, count(*) AS jobs, sum(version) AS versions FROM nightjar_device_jobs
 WHERE state IN ('queued', 'leased') GROUP BY lab
"""
UNSHOWN: LiteralString = _SELECT + " WHERE shown < to_show ORDER BY requested_at DESC LIMIT %(most)s"
SERVED: LiteralString = """
SELECT repository_id, requested_by_id, max(leased_at) AS at FROM nightjar_device_jobs
 WHERE lab = %(lab)s AND leased_at > %(since)s GROUP BY repository_id, requested_by_id
"""
# Requests that were refused at once use no budget.
REQUESTS: LiteralString = """
SELECT count(*) AS everybody, count(*) FILTER (WHERE requested_by_id = %(person)s) AS person FROM nightjar_device_jobs
 WHERE lab = %(lab)s AND target = %(target)s AND repository_id = %(repository_id)s AND requested_at >= %(since)s
   AND ended_for NOT IN ('degraded', 'over budget')
"""
DURATIONS: LiteralString = """
SELECT ended_at - leased_at AS seconds FROM nightjar_device_jobs
 WHERE lab = %(lab)s AND target = %(target)s AND state = 'done' ORDER BY ended_at DESC LIMIT 20
"""
REMOVE_OLD: LiteralString = "DELETE FROM nightjar_device_jobs WHERE ended_at > 0 AND ended_at < %(before)s RETURNING id"


def row_of_job(job: DeviceJob) -> dict[str, object]:
    """Return the values of a row."""
    return {name: getattr(job, name) for name in _PLAIN} | {
        "suites": json.dumps(job.suites),
        "origin": job.origin.value,
        "requested_by_id": job.requested_by.id,
        "requested_by": job.requested_by.login,
        "state": job.state.value,
        "approved_by_id": job.approved_by.id,
        "approved_by": job.approved_by.login,
        "arrived": json.dumps(job.arrived),
        "ended_for": job.end.value,
        "shown": int(job.shown),
        "to_show": int(job.to_show),
    }


def job_of_row(row: Mapping[str, Any]) -> DeviceJob:
    """Read a job from its row."""
    return DeviceJob(
        **{name: row[name] for name in _PLAIN},
        suites=tuple(read_json(row["suites"])),
        origin=JobOrigin(row["origin"]),
        requested_by=Someone(row["requested_by_id"], row["requested_by"]),
        state=DeviceJobState(row["state"]),
        approved_by=Someone(row["approved_by_id"], row["approved_by"]),
        arrived=tuple(read_json(row["arrived"])),
        end=JobEnd(row["ended_for"]),
        shown=ShownStep(row["shown"]),
    )
