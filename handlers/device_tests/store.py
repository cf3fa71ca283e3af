"""Store jobs for devices in the engine's database, on SQLite and on PostgreSQL.

Each change reads a job, computes its new state (`transitions`), and writes it if nobody changed the row meanwhile;
otherwise it starts again. So any number of replicas may change one job, and each change sees all earlier ones. One
unique index ensures that a device has at most one job, another one that a head has one open job per target.
"""

from __future__ import annotations

import hashlib
import secrets
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, replace
from typing import Any, cast

from nightjar_formats.model import TargetKey

from bot.core.parts import PartKey
from bot.engine.sql.errors import DatabaseFailure, DuplicateKey
from bot.engine.sql.transactions import Connector
from bot.results.few_tests import FewTestsOutcome
from handlers.device_tests import texts, transitions
from handlers.device_tests.bell import JobBell
from handlers.device_tests.model import DeviceJob, DeviceJobState, JobEnd, ShownStep, Someone
from handlers.device_tests.queue import (
    LastServed,
    LimitsOf,
    PickedJob,
    QueuedJobs,
    QueueOfRepository,
    jobs_before,
    next_queues,
)
from handlers.device_tests.rows import (
    BY_ID,
    DURATIONS,
    INSERT,
    IS_WANTED,
    JOBS_BEFORE,
    NEEDS_SWEEP,
    NEXT_IDLE,
    NEXT_OF_QUEUES,
    OF_LAB,
    OF_PULL,
    OPEN_OF_PULLS,
    OPEN_OF_TARGET,
    OPEN_TARGETS,
    OVERDUE,
    QUEUED_LATELY,
    QUEUED_TARGETS,
    QUEUES,
    REMOVE_OLD,
    REPLACE,
    REQUESTS,
    SAME_JOB,
    SERVED,
    TESTED_PULL,
    UNSHOWN,
    job_of_row,
    row_of_job,
)

TRIES = 50
"""How often a change is tried. A try fails only if another change succeeds, so fifty are enough for fifty at once."""
ONE_DAY = 86_400.0
STORED_SECONDS = 90 * ONE_DAY
"""Seconds for which ended jobs are stored: for budgets, average durations, and people who ask."""
BATCH = 100
QUEUED_SLOT, IDLE_SLOT = -1, -2
"""The slots of rows of `QUEUES` that stand for queued jobs, and for jobs of the bot."""
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


@dataclass(frozen=True, slots=True)
class UnfinishedJobs:
    """`must_change`: a job expires or is old enough to be removed, or a check run is outdated."""

    has_open: bool
    must_change: bool


class UnknownJob(LookupError):
    """There is no job of this id in this lab."""


class JobStore:
    """The jobs of all labs. All methods raise DatabaseFailure when the database cannot be reached.

    `clock` is in seconds since 1970.
    """

    def __init__(self, connector: Connector, clock: Callable[[], float] = time.time) -> None:
        self._connector = connector
        self._clock = clock
        self.bell = JobBell()
        """Wakes claims that wait for a job."""

    async def submit(
        self, job: DeviceJob, *, approval_needed: bool, refused: JobEnd = JobEnd.NONE
    ) -> tuple[DeviceJob, bool]:
        """Store a job; return the stored job, and whether it is new. `refused` says why it ends at once.

        The same id is stored once. If the head has an open job for the target already, that job is returned: two people
        who request the same test get one test.
        """
        if refused is JobEnd.NONE:
            new = transitions.submitted(job, approval_needed=approval_needed)
        else:
            new = transitions.refused(job, refused)
        for _ in range(TRIES):
            # The job is inserted before any search: the unique index decides which of two replicas is first, which a
            # query could not.
            if await self._connector.execute_query_all_async(INSERT, **row_of_job(new)):
                self._ring(new)
                return new, True
            values = {"repository_id": new.repository_id, "pull_request": new.pull_request, "purpose": new.purpose}
            values |= {"id": new.id, "sha": new.sha, "lab": new.lab, "target": new.target}
            for row in await self._connector.execute_query_all_async(SAME_JOB, **values):
                return job_of_row(row), False
            # The open job that refused the row has ended since then.
        raise DatabaseFailure(texts.CONTENDED)

    async def claim(
        self, lab: str, targets: Collection[str], limits_of: LimitsOf, *, is_able: bool = False
    ) -> ClaimedJob | None:
        """Hand out one job of a lab for one of these targets, or None.

        Each job is handed out to one caller, however many replicas ask at once. `limits_of` says what app.yaml allows.
        `is_able`: the agent knows jobs that are not a pull request's, so that it may get those of the bot.
        """
        # Each round reads the jobs again: another replica has just handed out the picked job or its device.
        for _ in range(TRIES):
            moment = self._clock()
            picked = await self._pick(lab, targets, limits_of, is_able=is_able)
            if picked is None:
                return None
            lease = secrets.token_urlsafe(LEASE_BYTES)
            leased = transitions.hand_out(picked.job, lease_digest(lease), picked.slot, picked.limits.timeout, moment)
            try:
                if (written := await self._replace(picked.job, leased)) is not None:
                    return ClaimedJob(written, lease)
            except DuplicateKey:
                continue  # another replica gave the device to another job at this moment
        raise DatabaseFailure(texts.CONTENDED)

    async def _pick(
        self, lab: str, targets: Collection[str], limits_of: LimitsOf, *, is_able: bool
    ) -> PickedJob | None:
        """Choose the next job of a lab for one of these targets; None if there is none, or no device is free."""
        since, names = self._clock() - ONE_DAY, list(targets)
        rows: list[dict[str, Any]] = await self._connector.execute_query_all_async(QUEUES, lab=lab, targets=names)
        used: dict[str, set[int]] = defaultdict(set)
        for row in rows:
            if row["slot"] >= 0:
                used[row["target"]].add(row["slot"])
        waiting, idle = (
            [
                QueueOfRepository(TargetKey(row["repository"], lab, row["target"]), _within(row["served_at"], since))
                for row in rows
                if row["slot"] == slot
            ]
            for slot in (QUEUED_SLOT, IDLE_SLOT)
        )
        statement = NEXT_OF_QUEUES
        free = {queue.name: device for queue, device in next_queues(waiting, limits_of, used)}
        if not free and is_able:
            statement = NEXT_IDLE
            free = {queue.name: device for queue, device in next_queues(idle, limits_of, used)}
        if not free:
            return None
        jobs = await self._connector.execute_query_all_async(
            statement, lab=lab, targets=names, queues=list(free), since=since
        )
        if not jobs:
            return None  # another replica has just handed out the last one
        job = job_of_row(jobs[0])
        device = free[QueueOfRepository(job.about).name]
        return PickedJob(job, device.slot, device.limits)

    async def heartbeat(
        self, lab: str, job_id: str, lease: str, *, log_url: str | None = None, note: str = ""
    ) -> DeviceJob:
        """Extend a lease. Raises `UnknownJob` or `LeaseLost`.

        A job that the bot requested is queued again instead if a person has requested the target meanwhile.
        """
        digest, moment = lease_digest(lease), self._clock()
        extended = await self._change(
            lab, job_id, lambda job: transitions.heartbeat(job, digest, moment, log_url=log_url, note=note)
        )
        if extended.is_bots and await self._is_wanted(extended):
            await self._change(lab, job_id, lambda job: transitions.give_way(job, digest, moment))
            raise transitions.LeaseLost
        return extended

    async def _is_wanted(self, job: DeviceJob) -> bool:
        """Return whether a person has requested the target since a job was handed out.

        A job that waited before could not be handed out then, so it would displace the bot's job again and again.
        """
        values = {"lab": job.lab, "target": job.target, "since": job.leased_at}
        (row,) = await self._connector.execute_query_all_async(IS_WANTED, **values)
        return bool(row["wanted"])

    async def fail(self, lab: str, job_id: str, lease: str, reason: str) -> DeviceJob:
        """Return a job to the queue that its lab cannot do. Raises `UnknownJob` or `LeaseLost`."""
        digest, moment = lease_digest(lease), self._clock()
        return await self._change(lab, job_id, lambda job: transitions.fail(job, digest, reason, moment))

    async def complete(self, lab: str, job_id: str, suite: str) -> DeviceJob:
        """Note that results of a suite arrived. Raises `UnknownJob` or `NotHandedOut`.

        The caller has checked that the run is of the job's repository, target and commit.
        """
        moment = self._clock()
        return await self._change(lab, job_id, lambda job: transitions.complete(job, suite, moment))

    async def complete_few_tests(self, lab: str, job_id: str, suite: str, outcome: FewTestsOutcome) -> DeviceJob:
        """Note what the few tests of a job did in a suite. Raises `UnknownJob` or `NotHandedOut`."""
        moment = self._clock()
        return await self._change(lab, job_id, lambda job: transitions.complete_few_tests(job, suite, outcome, moment))

    async def complete_benchmark(self, lab: str, job_id: str, report: str) -> DeviceJob:
        """Note the report of a benchmark. Raises `UnknownJob` or `NotHandedOut`."""
        moment = self._clock()
        return await self._change(lab, job_id, lambda job: transitions.complete_benchmark(job, report, moment))

    async def end_unable(self, job: DeviceJob) -> DeviceJob:
        """End a job that the lab's command cannot do."""
        moment = self._clock()
        return await self._change(job.lab, job.id, lambda current: transitions.end_unable(current, moment))

    async def approve(self, job: DeviceJob, sha: str, approver: Someone) -> DeviceJob:
        """Let labs see a job, if it is of this commit."""
        moment = self._clock()
        return await self._change(job.lab, job.id, lambda current: transitions.approve(current, sha, approver, moment))

    async def cancel(self, job: DeviceJob, end: JobEnd, *, also_running: bool) -> DeviceJob:
        """End a job; without `also_running`, only if no lab has it."""
        # `_change` applies the transition to the job as it is when the write happens.
        moment = self._clock()
        transition = transitions.cancel if also_running else transitions.cancel_if_waiting
        return await self._change(job.lab, job.id, lambda current: transition(current, end, moment))

    async def remove_target(self, job: DeviceJob) -> DeviceJob:
        """End a job whose target is no longer in app.yaml."""
        moment = self._clock()
        return await self._change(job.lab, job.id, lambda current: transitions.remove_target(current, moment))

    async def expire(self) -> list[DeviceJob]:
        """Queue jobs again whose lease expired, and end jobs that have waited too long.

        Returns the jobs that changed, at most a batch of them.
        """
        moment = self._clock()
        rows = await self._connector.execute_query_all_async(OVERDUE, now=moment, most=BATCH)
        jobs = [job_of_row(row) for row in rows]
        return [
            await self._change(job.lab, job.id, lambda current: transitions.expire(current, moment)) for job in jobs
        ]

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

    async def open_of_pulls(self, repository_id: int, numbers: Iterable[int]) -> dict[int, int]:
        """Return how many jobs of pull requests have not ended, by number; those without any are left out."""
        values = {"repository_id": repository_id, "numbers": list(numbers)}
        rows = await self._connector.execute_query_all_async(OPEN_OF_PULLS, **values)
        return {int(row["pull_request"]): int(row["jobs"]) for row in rows}

    async def of_lab(self, lab: str) -> list[DeviceJob]:
        """Return the jobs of a lab that are queued or leased."""
        return [job_of_row(row) for row in await self._connector.execute_query_all_async(OF_LAB, lab=lab)]

    async def queued_lately(self, labs: Iterable[str], since: float) -> list[DeviceJob]:
        """Return the queued jobs of labs that expire after a moment; these are the ones that were queued last."""
        values = {"labs": list(labs), "after": since}
        rows = await self._connector.execute_query_all_async(QUEUED_LATELY, **values)
        return [job_of_row(row) for row in rows]

    async def open_targets(self) -> list[TargetKey]:
        """Return the targets with jobs that have not ended."""
        rows = await self._connector.execute_query_all_async(OPEN_TARGETS)
        return [TargetKey(*str(row["name"]).split(" ", 2)) for row in rows]

    async def tested_repositories(self) -> set[str]:
        """Return the repositories with jobs that have not ended."""
        unfinished = await self.unfinished()
        return {target.repository for target in await self.open_targets()} if unfinished.has_open else set()

    async def open_of_target(self, target: TargetKey) -> list[DeviceJob]:
        """Return the jobs of a target that have not ended, ordered by the time at which each expires."""
        name = " ".join((target.repository, target.lab, target.target))
        return [job_of_row(row) for row in await self._connector.execute_query_all_async(OPEN_OF_TARGET, name=name)]

    async def unfinished(self) -> UnfinishedJobs:
        """Return what there is to do about jobs at this moment."""
        moment = self._clock()
        (row,) = await self._connector.execute_query_all_async(NEEDS_SWEEP, now=moment, before=moment - STORED_SECONDS)
        return UnfinishedJobs(has_open=bool(row["has_open"]), must_change=bool(row["needed"]))

    async def queued_targets(self, lab: str) -> list[str]:
        """Return the targets of a lab with queued jobs."""
        return [str(row["name"]) for row in await self._connector.execute_query_all_async(QUEUED_TARGETS, lab=lab)]

    async def tested_pull(self, repository_id: int, target: TargetKey, sha: str) -> int | None:
        """Return the pull request for which a commit was handed out to a target's lab, or None."""
        values = {"repository_id": repository_id, "lab": target.lab, "target": target.target, "sha": sha}
        rows = await self._connector.execute_query_all_async(TESTED_PULL, **values)
        return cast("int", rows[0]["pull_request"]) if rows else None

    async def unshown(self) -> list[DeviceJob]:
        """Return jobs whose check runs are outdated, the newest heads first; at most a batch."""
        return [job_of_row(row) for row in await self._connector.execute_query_all_async(UNSHOWN, most=BATCH)]

    async def served(self, lab: str) -> LastServed:
        """Return when a lab last got jobs of each repository and of each person, within the last day."""
        since = self._clock() - ONE_DAY
        rows: list[dict[str, Any]] = await self._connector.execute_query_all_async(SERVED, lab=lab, since=since)
        repositories: dict[int, float] = {}
        people: dict[tuple[int, int], float] = {}
        for row in rows:
            repository, served_at = row["repository_id"], row["at"]
            people[repository, row["requested_by_id"]] = served_at
            repositories[repository] = max(served_at, repositories.get(repository, 0.0))
        return LastServed(repositories, people)

    async def tests_before(self, job: DeviceJob) -> int:
        """Return how many tests of its target run or wait before a queued job."""
        values = {"lab": job.lab, "target": job.target, "id": job.id}
        rows: list[dict[str, Any]] = await self._connector.execute_query_all_async(JOBS_BEFORE, **values)
        running = sum(int(row["jobs"]) for row in rows if row["person"] is None)
        queued = [QueuedJobs(**row) for row in rows if row["person"] is not None]
        return running + jobs_before(job, queued, await self.served(job.lab))

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
        rows = await self._connector.execute_query_all_async(REMOVE_OLD, before=self._clock() - STORED_SECONDS)
        return len(rows)

    async def _change(self, lab: str, job_id: str, change: Callable[[DeviceJob], DeviceJob]) -> DeviceJob:
        """Read a job, apply a change and write it, again if another process wrote the job meanwhile."""
        for _ in range(TRIES):
            current = await self.find(lab, job_id)
            changed = change(current)
            # A repeated call writes nothing, so it neither wakes labs nor competes with other changes.
            if changed == current:
                return current
            if (written := await self._replace(current, changed)) is not None:
                return written
        raise DatabaseFailure(texts.CONTENDED)

    async def _replace(self, current: DeviceJob, changed: DeviceJob) -> DeviceJob | None:
        """Write a changed job; None if another process wrote the job since `current` was read."""
        new = replace(changed, version=current.version + 1)
        rows = await self._connector.execute_query_all_async(REPLACE, read_version=current.version, **row_of_job(new))
        if rows:
            self._ring(new)
        return new if rows else None

    def _ring(self, job: DeviceJob) -> None:
        if job.state is not DeviceJobState.LEASED:  # it may be claimed, or its device is free
            self.bell.ring(job.lab, job.target)


def _within(served_at: float | None, since: float) -> float:
    return served_at if served_at is not None and served_at > since else 0.0


def lease_digest(lease: str) -> str:
    """Return the digest of a lease. A fast hash is enough, because a lease is random."""
    return hashlib.sha256(lease.encode("utf-8", "replace")).hexdigest()


def job_id_of(intent: str, names: Iterable[str]) -> str:
    """Return the id of a job: the same each time that the same effect is applied.

    `intent` identifies the effect; `names` has the target and the head.
    """
    return digest_of(intent, *names)


def digest_of(*words: str) -> str:
    """Return a digest of 96 bits, for IDs that are derived from what they stand for."""
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:24]


JOBS = PartKey[JobStore]("device-jobs")
