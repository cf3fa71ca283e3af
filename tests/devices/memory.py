"""The real job store on a dictionary instead of a database, so that simulating a month takes minutes."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import cast

from nightjar_formats.model import TargetKey
from procrastinate.connector import BaseAsyncConnector

from handlers.device_tests import transitions
from handlers.device_tests.model import DeviceJob, DeviceJobState, JobEnd
from handlers.device_tests.queue import LastServed
from handlers.device_tests.store import BATCH, ONE_DAY, JobRequests, JobStore, UnknownJob

CLAIMABLE = frozenset({DeviceJobState.QUEUED, DeviceJobState.LEASED})


class MemoryStore(JobStore):
    """A store whose reads and writes are in memory, under the conditions of the statements in `rows`.

    `meanwhile` is called between the read and the write of a change, when another replica may write first.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        super().__init__(cast("BaseAsyncConnector", None), now)
        self.jobs: dict[str, DeviceJob] = {}
        self.meanwhile: Callable[[DeviceJob], Awaitable[None]] = _nothing
        self.wake: Callable[[DeviceJob], None] = _ignore
        self._clock = now
        self._pulls: dict[tuple[int, int], list[str]] = defaultdict(list)
        self._labs: dict[str, dict[str, DeviceJob]] = defaultdict(dict)
        self._open: dict[str, DeviceJob] = {}
        self._unshown: dict[str, DeviceJob] = {}
        self._scheduled: list[tuple[float, str]] = []
        self._served: dict[str, dict[tuple[int, int], float]] = defaultdict(dict)
        self._requested: dict[tuple[int, str, str], list[tuple[float, int]]] = defaultdict(list)

    async def submit(
        self, job: DeviceJob, *, approval_needed: bool, refused: JobEnd = JobEnd.NONE
    ) -> tuple[DeviceJob, bool]:
        """Store a new job, unless the head has an open one for the target; here none is refused."""
        assert refused is JobEnd.NONE
        new = transitions.submitted(job, approval_needed=approval_needed)
        pull = (new.repository_id, new.pull_request)
        for known in (self.jobs[name] for name in self._pulls[pull]):
            if known.id == new.id or (known.is_open and (known.sha, known.about) == (new.sha, new.about)):
                return known, False
        self._pulls[pull].append(new.id)
        self._requested[new.repository_id, new.lab, new.target].append((new.requested_at, new.requested_by.id))
        self._put(new)
        self._ring(new)
        return new, True

    async def find(self, lab: str, job_id: str) -> DeviceJob:
        """Return a job of a lab."""
        job = self.jobs.get(job_id)
        if job is None or job.lab != lab:
            raise UnknownJob(job_id)
        return job

    async def of_pull(self, repository_id: int, number: int) -> list[DeviceJob]:
        """Return the jobs of a pull request, oldest first."""
        jobs = [self.jobs[name] for name in self._pulls[repository_id, number]]
        return sorted(jobs, key=lambda job: (job.requested_at, job.id))

    async def of_lab(self, lab: str) -> list[DeviceJob]:
        """Return the jobs of a lab that are queued or leased."""
        return list(self._labs[lab].values())

    async def open_jobs(self) -> list[DeviceJob]:
        """Return the jobs that have not ended."""
        return list(self._open.values())

    async def expire(self) -> list[DeviceJob]:
        """Expire leases and jobs whose time is over."""
        changed, now = list[DeviceJob](), self._clock()
        while self._scheduled and self._scheduled[0][0] <= now and len(changed) < BATCH:
            moment, name = heapq.heappop(self._scheduled)
            if self.jobs[name].expires_at == moment:
                changed.append(await self._change(self.jobs[name].lab, name, lambda job: transitions.expire(job, now)))
        return changed

    async def unshown(self) -> list[DeviceJob]:
        """Return jobs whose check runs are outdated, newest heads first."""
        return sorted(self._unshown.values(), key=lambda job: -job.requested_at)[:BATCH]

    async def served(self, lab: str) -> LastServed:
        """Return the person that a lab served last."""
        since, repositories = self._clock() - ONE_DAY, dict[int, float]()
        people = {who: at for who, at in self._served[lab].items() if at > since}
        for (repository, _), at in people.items():
            repositories[repository] = max(at, repositories.get(repository, 0.0))
        return LastServed(repositories, people)

    async def requests(self, repository_id: int, lab: str, target: str, person: int, since: float) -> JobRequests:
        """Count the requests of a target."""
        found = [who for at, who in self._requested[repository_id, lab, target][-1000:] if at >= since]
        return JobRequests(len(found), found.count(person))

    async def durations(self, lab: str, target: str) -> list[float]:
        """Return nothing: titles are not simulated."""
        return []

    async def tested_pull(self, repository_id: int, about: TargetKey, sha: str) -> int | None:
        """Return nothing: results are not ingested here."""
        return None

    async def remove_old(self) -> int:
        """Remove nothing: the test reads all records at its end."""
        return 0

    async def _replace(self, known: DeviceJob, wanted: DeviceJob) -> DeviceJob | None:
        await self.meanwhile(wanted)
        device = (wanted.target, wanted.slot)
        others = (one for one in self._labs[wanted.lab].values() if one.id != wanted.id)
        taken = wanted.slot >= 0 and any((one.target, one.slot) == device for one in others)
        if taken or self.jobs[known.id].version != known.version:
            return None
        new = replace(wanted, version=known.version + 1)
        self._put(new)
        self._ring(new)
        return new

    def _ring(self, job: DeviceJob) -> None:
        self.wake(job)

    def _put(self, job: DeviceJob) -> None:
        before = self.jobs.get(job.id)
        self.jobs[job.id] = job
        for where, belongs in (
            (self._labs[job.lab], job.state in CLAIMABLE),
            (self._open, job.is_open),
            (self._unshown, job.shown < job.to_show),
        ):
            if belongs:
                where[job.id] = job
            else:
                where.pop(job.id, None)
        if job.expires_at and (before is None or before.expires_at != job.expires_at):
            heapq.heappush(self._scheduled, (job.expires_at, job.id))
        if before is None or before.leased_at != job.leased_at:
            who = (job.repository_id, job.requested_by.id)
            self._served[job.lab][who] = max(job.leased_at, self._served[job.lab].get(who, 0.0))


async def _nothing(_: DeviceJob) -> None:
    return


def _ignore(_: DeviceJob) -> None:
    return
