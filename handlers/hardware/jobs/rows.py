"""A job as a row of `nightjar_device_jobs`, and the statements that read and write them.

The table is in `bot/engine/sqlite_schema.py` and its twin. Statements repeat the conditions of partial indices, or they
would scan.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, LiteralString

from handlers.hardware.jobs.model import DeviceJob, DeviceJobState, JobEnd, JobOrigin, ShownStep, Someone

_COLUMNS: tuple[LiteralString, ...] = (
    "id",
    "repository_id",
    "repository",
    "pull_request",
    "sha",
    "lab",
    "target",
    "suites",
    "tier",
    "origin",
    "requested_by_id",
    "requested_by",
    "requested_at",
    "state",
    "expires_at",
    "approved_by_id",
    "approved_by",
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
    "arrived",
    "log_url",
    "note",
    "ended_for",
    "ended_at",
    "shown",
    "to_show",
    "version",
)
_NAMES: LiteralString = ", ".join(_COLUMNS)
_VALUES: LiteralString = ", ".join(f"%({name})s" for name in _COLUMNS)
_SETTINGS: LiteralString = ", ".join(f"{name} = %({name})s" for name in _COLUMNS)
_SELECT: LiteralString = f"SELECT {_NAMES} FROM nightjar_device_jobs"  # noqa: S608  # constants

# Without a target: the id and the index of open jobs may both refuse a row.
INSERT: LiteralString = (
    f"INSERT INTO nightjar_device_jobs ({_NAMES}) VALUES ({_VALUES}) ON CONFLICT DO NOTHING RETURNING id"  # noqa: S608  # constants
)
# On PostgreSQL the unique index refuses what another replica leased at the same moment; else the condition does.
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
OF_LAB: LiteralString = _SELECT + " WHERE lab = %(lab)s AND state IN ('queued', 'leased')"
OVERDUE: LiteralString = _SELECT + " WHERE expires_at > 0 AND expires_at <= %(now)s ORDER BY expires_at LIMIT %(most)s"
OPEN_JOBS: LiteralString = _SELECT + " WHERE expires_at > 0 ORDER BY expires_at"
TESTED_PULL: LiteralString = """
SELECT pull_request FROM nightjar_device_jobs
 WHERE sha = %(sha)s AND lab = %(lab)s AND target = %(target)s AND repository_id = %(repository_id)s AND attempt > 0
 ORDER BY requested_at DESC LIMIT 1
"""
# Of open jobs alone, by their index.
VERSIONS_OF_LABS: LiteralString = """
SELECT lab, count(*) AS jobs, sum(version) AS versions FROM nightjar_device_jobs
 WHERE state IN ('queued', 'leased') GROUP BY lab
"""
UNSHOWN: LiteralString = _SELECT + " WHERE shown < to_show ORDER BY requested_at DESC LIMIT %(most)s"
SERVED: LiteralString = """
SELECT repository_id, requested_by_id, max(leased_at) AS at FROM nightjar_device_jobs
 WHERE lab = %(lab)s AND leased_at > %(since)s GROUP BY repository_id, requested_by_id
"""
REQUESTS: LiteralString = """
SELECT count(*) AS everybody, count(*) FILTER (WHERE requested_by_id = %(person)s) AS person FROM nightjar_device_jobs
 WHERE lab = %(lab)s AND target = %(target)s AND repository_id = %(repository_id)s AND requested_at >= %(since)s
"""
DURATIONS: LiteralString = """
SELECT ended_at - leased_at AS seconds FROM nightjar_device_jobs
 WHERE lab = %(lab)s AND target = %(target)s AND state = 'done' ORDER BY ended_at DESC LIMIT 20
"""
REMOVE_OLD: LiteralString = "DELETE FROM nightjar_device_jobs WHERE ended_at > 0 AND ended_at < %(before)s RETURNING id"


def row_of_job(job: DeviceJob) -> dict[str, object]:
    """Return the values of a row."""
    return {
        "id": job.id,
        "repository_id": job.repository_id,
        "repository": job.repository,
        "pull_request": job.pull_request,
        "sha": job.sha,
        "lab": job.lab,
        "target": job.target,
        "suites": json.dumps(job.suites),
        "tier": job.tier,
        "origin": job.origin.value,
        "requested_by_id": job.requested_by.id,
        "requested_by": job.requested_by.login,
        "requested_at": job.requested_at,
        "state": job.state.value,
        "expires_at": job.expires_at,
        "approved_by_id": job.approved_by.id,
        "approved_by": job.approved_by.login,
        "approved_at": job.approved_at,
        "queued_at": job.queued_at,
        "attempt": job.attempt,
        "slot": job.slot,
        "lease": job.lease,
        "old_lease": job.old_lease,
        "lease_expires_at": job.lease_expires_at,
        "leased_at": job.leased_at,
        "deadline": job.deadline,
        "run_id": job.run_id,
        "arrived": json.dumps(job.arrived),
        "log_url": job.log_url,
        "note": job.note,
        "ended_for": job.end.value,
        "ended_at": job.ended_at,
        "shown": int(job.shown),
        "to_show": int(job.to_show),
        "version": job.version,
    }


def job_of_row(row: Mapping[str, Any]) -> DeviceJob:
    """Read a job from its row."""
    return DeviceJob(
        id=row["id"],
        repository_id=row["repository_id"],
        repository=row["repository"],
        pull_request=row["pull_request"],
        sha=row["sha"],
        lab=row["lab"],
        target=row["target"],
        suites=tuple(json.loads(row["suites"])),
        tier=row["tier"],
        origin=JobOrigin(row["origin"]),
        requested_by=Someone(row["requested_by_id"], row["requested_by"]),
        requested_at=row["requested_at"],
        state=DeviceJobState(row["state"]),
        expires_at=row["expires_at"],
        approved_by=Someone(row["approved_by_id"], row["approved_by"]),
        approved_at=row["approved_at"],
        queued_at=row["queued_at"],
        attempt=row["attempt"],
        slot=row["slot"],
        lease=row["lease"],
        old_lease=row["old_lease"],
        lease_expires_at=row["lease_expires_at"],
        leased_at=row["leased_at"],
        deadline=row["deadline"],
        run_id=row["run_id"],
        arrived=tuple(json.loads(row["arrived"])),
        log_url=row["log_url"],
        note=row["note"],
        end=JobEnd(row["ended_for"]),
        ended_at=row["ended_at"],
        shown=ShownStep(row["shown"]),
        version=row["version"],
    )
