"""Store jobs for devices in the engine's database, on SQLite and on PostgreSQL.

Each change reads a job, computes its new state (`transitions`), and writes it if nobody changed the row meanwhile;
otherwise it starts again. So any number of replicas may change one job, and each change sees all earlier ones. One
unique index ensures that a device has one job at a time, another one that a head has one open job per target.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

from nightjar_formats.model import TargetKey
from procrastinate.connector import BaseAsyncConnector
from procrastinate.exceptions import ConnectorException, UniqueViolation

from bot.core.parts import PartKey
from handlers.device_tests import texts, transitions
from handlers.device_tests.bell import JobBell, LabVersions
from handlers.device_tests.model import DeviceJob, DeviceJobState, JobEnd, ShownStep, Someone
from handlers.device_tests.queue import LastServed, LimitsOf, pick_job
from handlers.device_tests.rows import (
    BY_ID,
    DURATIONS,
    INSERT,
    OF_LAB,
    OF_PULL,
    OPEN_JOBS,
    OVERDUE,
    REMOVE_OLD,
    REPLACE,
    REQUESTS,
    SERVED,
    TESTED_PULL,
    UNSHOWN,
    VERSIONS_OF_LABS,
    job_of_row,
    row_of_job,
)

TRIES = 50
"""How often a change is tried. A try fails only if another change succeeds, so fifty are enough for fifty at once."""
ONE_DAY = 86_400.0
STORED_SECONDS = 90 * ONE_DAY
"""Seconds for which ended jobs are stored: for budgets, average durations, and people who ask."""
BATCH = 100
LEASE_BYTES = 32
"""256 random bits, which nobody can guess."""


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job that was handed out, with the text of its lease, which is stored as a digest and shown this once."""

    job: DeviceJob
    lease: str


@dataclass(frozen=True, slots=True)
class JobRequests:
    """The number of requested jobs of a target: by all, and by one person."""

    all: int
    by_person: int


class UnknownJob(LookupError):
    """There is no job of this id in this lab."""


class JobStore:
    """The jobs of all labs. All methods raise ConnectorException when the database cannot be reached.

    `now` is in seconds since 1970.
    """

    def __init__(self, connector: BaseAsyncConnector, now: Callable[[], float] = time.time) -> None:
        self._connector = connector
        self._now = now
        self.bell = JobBell()
        """Wakes those who wait for a job."""

    async def submit(
        self, job: DeviceJob, *, approval_needed: bool, refused: JobEnd = JobEnd.NONE
    ) -> tuple[DeviceJob, bool]:
        """Store a new job, and say whether it is new; `refused` says why it ends at once.

        The same id is stored once. If the head has an open job for the target already, that one is returned: two people
        who ask for one thing get one test.
        """
        if refused is JobEnd.NONE:
            new = transitions.submitted(job, approval_needed=approval_needed)
        else:
            new = transitions.refused(job, refused)
        for _ in range(TRIES):
            # Insert first, search afterwards: the unique index decides which of two replicas is first, a query before
            # could not.
            if await self._connector.execute_query_all_async(INSERT, **row_of_job(new)):
                self._ring(new)
                return new, True
            for known in await self.of_pull(new.repository_id, new.pull_request):
                same = (known.sha, known.about) == (new.sha, new.about)
                if known.id == new.id or (same and known.is_open):
                    return known, False
            # The open job that refused the row has ended since then.
        raise ConnectorException(texts.CONTENDED)

    async def claim(self, lab: str, targets: Collection[str], limits_of: LimitsOf) -> ClaimedJob | None:
        """Hand out one job of a lab for one of these targets, or None.

        Each job is handed out to one caller, however many replicas ask at once. `limits_of` says what app.yaml allows.
        """
        # Read again in each round: another replica has just handed out the job or the device that this one picked.
        for _ in range(TRIES):
            now = self._now()
            picked = pick_job(await self.of_lab(lab), targets, limits_of, await self.served(lab))
            if picked is None:
                return None
            lease = secrets.token_urlsafe(LEASE_BYTES)
            leased = transitions.hand_out(picked.job, lease_digest(lease), picked.slot, picked.limits.timeout, now)
            try:
                if (written := await self._replace(picked.job, leased)) is not None:
                    return ClaimedJob(written, lease)
            except UniqueViolation:
                continue  # another replica gave the device to another job at this moment
        raise ConnectorException(texts.CONTENDED)

    async def heartbeat(
        self, lab: str, job_id: str, lease: str, *, log_url: str | None = None, note: str = ""
    ) -> DeviceJob:
        """Extend a lease. Raises `UnknownJob` or `LeaseLost`."""
        digest, now = lease_digest(lease), self._now()
        return await self._change(
            lab, job_id, lambda job: transitions.heartbeat(job, digest, now, log_url=log_url, note=note)
        )

    async def fail(self, lab: str, job_id: str, lease: str, reason: str) -> DeviceJob:
        """Take a job back that its lab cannot do. Raises `UnknownJob` or `LeaseLost`."""
        digest, now = lease_digest(lease), self._now()
        return await self._change(lab, job_id, lambda job: transitions.fail(job, digest, reason, now))

    async def complete(self, lab: str, job_id: str, suite: str) -> DeviceJob:
        """Note that results of a suite arrived. Raises `UnknownJob` or `NotHandedOut`.

        The caller has checked that the run is of the job's repository, target and commit.
        """
        now = self._now()
        return await self._change(lab, job_id, lambda job: transitions.complete(job, suite, now))

    async def approve(self, job: DeviceJob, sha: str, by: Someone) -> DeviceJob:
        """Let labs see a job, if it is of this commit."""
        now = self._now()
        return await self._change(job.lab, job.id, lambda known: transitions.approve(known, sha, by, now))

    async def cancel(self, job: DeviceJob, why: JobEnd, *, also_running: bool) -> DeviceJob:
        """End a job; without `also_running`, only if no lab has it."""
        # Which of the two applies is decided in `_change`, for the job as it is at the moment of the write.
        now = self._now()
        end = transitions.cancel if also_running else transitions.cancel_if_waiting
        return await self._change(job.lab, job.id, lambda known: end(known, why, now))

    async def remove_target(self, job: DeviceJob) -> DeviceJob:
        """End a job whose target is no longer in app.yaml."""
        now = self._now()
        return await self._change(job.lab, job.id, lambda known: transitions.remove_target(known, now))

    async def expire(self) -> list[DeviceJob]:
        """Queue jobs again whose lease expired, and end jobs that have waited too long.

        Returns the jobs that changed, at most a batch of them.
        """
        now = self._now()
        rows = await self._connector.execute_query_all_async(OVERDUE, now=now, most=BATCH)
        jobs = [job_of_row(row) for row in rows]
        return [await self._change(job.lab, job.id, lambda known: transitions.expire(known, now)) for job in jobs]

    async def show(self, lab: str, job_id: str, step: ShownStep) -> DeviceJob:
        """Note that the check run of a job was written for a step."""
        return await self._change(lab, job_id, lambda job: transitions.show(job, step))

    async def find(self, lab: str, job_id: str) -> DeviceJob:
        """Return a job of a lab. Raises `UnknownJob`, also for a job of another lab."""
        rows = await self._connector.execute_query_all_async(BY_ID, id=job_id)
        if not rows or rows[0]["lab"] != lab:
            raise UnknownJob(texts.UNKNOWN_JOB.format(id=job_id))
        return job_of_row(rows[0])

    async def of_pull(self, repository_id: int, number: int) -> list[DeviceJob]:
        """Return the jobs of a pull request, oldest first."""
        rows = await self._connector.execute_query_all_async(OF_PULL, repository_id=repository_id, number=number)
        return [job_of_row(row) for row in rows]

    async def of_lab(self, lab: str) -> list[DeviceJob]:
        """Return the jobs of a lab that are queued or leased."""
        return [job_of_row(row) for row in await self._connector.execute_query_all_async(OF_LAB, lab=lab)]

    async def open_jobs(self) -> list[DeviceJob]:
        """Return the jobs of all labs that have not ended, those first for which something happens soonest."""
        return [job_of_row(row) for row in await self._connector.execute_query_all_async(OPEN_JOBS)]

    async def versions(self) -> LabVersions:
        """Return for each lab with open jobs a value that changes whenever one of them is queued, leased or ended."""
        rows: list[dict[str, Any]] = await self._connector.execute_query_all_async(VERSIONS_OF_LABS)
        return {row["lab"]: (row["jobs"], row["versions"]) for row in rows}

    async def tested_pull(self, repository_id: int, about: TargetKey, sha: str) -> int | None:
        """Return the pull request for which a commit was handed out to a target's lab, or None."""
        values = {"repository_id": repository_id, "lab": about.lab, "target": about.target, "sha": sha}
        rows = await self._connector.execute_query_all_async(TESTED_PULL, **values)
        return cast("int", rows[0]["pull_request"]) if rows else None

    async def unshown(self) -> list[DeviceJob]:
        """Return jobs whose check runs are outdated, the newest heads first; at most a batch."""
        return [job_of_row(row) for row in await self._connector.execute_query_all_async(UNSHOWN, most=BATCH)]

    async def served(self, lab: str) -> LastServed:
        """Return when a lab last got jobs of each repository and of each person, within the last day."""
        since = self._now() - ONE_DAY
        rows: list[dict[str, Any]] = await self._connector.execute_query_all_async(SERVED, lab=lab, since=since)
        repositories: dict[int, float] = {}
        people: dict[tuple[int, int], float] = {}
        for row in rows:
            repository, at = row["repository_id"], row["at"]
            people[repository, row["requested_by_id"]] = at
            repositories[repository] = max(at, repositories.get(repository, 0.0))
        return LastServed(repositories, people)

    async def requests(self, repository_id: int, lab: str, target: str, person: int, since: float) -> JobRequests:
        """Count the jobs of a target that were requested since a moment, however they ended."""
        values = {"repository_id": repository_id, "lab": lab, "target": target, "person": person, "since": since}
        (row,) = await self._connector.execute_query_all_async(REQUESTS, **values)
        return JobRequests(int(row["everybody"]), int(row["person"]))

    async def durations(self, lab: str, target: str) -> list[float]:
        """Return how many seconds the last tests of a target took."""
        rows = await self._connector.execute_query_all_async(DURATIONS, lab=lab, target=target)
        return [float(row["seconds"]) for row in rows]

    async def remove_old(self) -> int:
        """Remove jobs that ended long ago; return how many."""
        rows = await self._connector.execute_query_all_async(REMOVE_OLD, before=self._now() - STORED_SECONDS)
        return len(rows)

    async def _change(self, lab: str, job_id: str, change: Callable[[DeviceJob], DeviceJob]) -> DeviceJob:
        for _ in range(TRIES):
            known = await self.find(lab, job_id)
            wanted = change(known)
            # A repeated call writes nothing, so it neither wakes labs nor competes with other changes.
            if wanted == known:
                return known
            if (written := await self._replace(known, wanted)) is not None:
                return written
        raise ConnectorException(texts.CONTENDED)

    async def _replace(self, known: DeviceJob, wanted: DeviceJob) -> DeviceJob | None:
        """Replace a job that was read; None if another process was faster."""
        new = replace(wanted, version=known.version + 1)
        rows = await self._connector.execute_query_all_async(REPLACE, known=known.version, **row_of_job(new))
        if rows:
            self._ring(new)
        return new if rows else None

    def _ring(self, job: DeviceJob) -> None:
        if job.state is not DeviceJobState.LEASED:  # it may be claimed, or its device is free
            self.bell.ring(job.lab)


def lease_digest(lease: str) -> str:
    """Return the digest of a lease. A fast hash is enough, because a lease is random."""
    return hashlib.sha256(lease.encode("utf-8", "replace")).hexdigest()


def job_id_of(intent: str, about: Iterable[str]) -> str:
    """Return the id of a job, the same each time that one request is carried out."""
    return hashlib.sha256("\0".join([intent, *about]).encode()).hexdigest()[:24]


JOBS = PartKey[JobStore]("device-jobs")
