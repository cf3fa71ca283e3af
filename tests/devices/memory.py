"""The real job store on a dictionary instead of a database, so that simulating a month takes minutes."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Awaitable, Callable, Collection
from dataclasses import replace
from typing import cast

from nightjar_formats.model import TargetKey

from bot.engine.sql.transactions import Connector
from handlers.device_tests import transitions
from handlers.device_tests.model import DeviceJob, DeviceJobState, JobEnd
from handlers.device_tests.queue import LastServed, LimitsOf, PickedJob
from handlers.device_tests.store import BATCH, ONE_DAY, JobRequests, JobStore, UnknownJob
from tests.devices.picking import pick_job

CLAIMABLE = frozenset({DeviceJobState.QUEUED, DeviceJobState.LEASED})


class MemoryStore(JobStore):
    """A store whose reads and writes are in memory, under the conditions of the statements in `rows`.

    `meanwhile` is called between the read and the write of a change, when another replica may write first.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(cast("Connector", None), clock)
        self.jobs: dict[str, DeviceJob] = {}
        self.meanwhile: Callable[[DeviceJob], Awaitable[None]] = _nothing
        self.wake: Callable[[DeviceJob], None] = _ignore
        self._clock = clock
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
        for job_ in (self.jobs[name] for name in self._pulls[pull]):
            if job_.id == new.id or (job_.is_open and (job_.sha, job_.about) == (new.sha, new.about)):
                return job_, False
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

    async def open_targets(self) -> list[TargetKey]:
        """Return the targets with jobs that have not ended."""
        return list({job.about for job in self._open.values()})

    async def open_of_target(self, target: TargetKey) -> list[DeviceJob]:
        """Return the jobs of a target that have not ended."""
        return [job for job in self._open.values() if job.about == target]

    async def _pick(
        self, lab: str, targets: Collection[str], limits_of: LimitsOf, *, is_able: bool
    ) -> PickedJob | None:
        return pick_job(await self.of_lab(lab), targets, limits_of, await self.served(lab))

    async def expire(self) -> list[DeviceJob]:
        """Expire leases and jobs whose time is over."""
        changed, moment = list[DeviceJob](), self._clock()
        while self._scheduled and self._scheduled[0][0] <= moment and len(changed) < BATCH:
            expires_at, name = heapq.heappop(self._scheduled)
            if self.jobs[name].expires_at == expires_at:
                changed.append(
                    await self._change(self.jobs[name].lab, name, lambda job: transitions.expire(job, moment))
                )
        return changed

    async def unshown(self) -> list[DeviceJob]:
        """Return jobs whose check runs are outdated, newest heads first."""
        return sorted(self._unshown.values(), key=lambda job: -job.requested_at)[:BATCH]

    async def served(self, lab: str) -> LastServed:
        """Return the person that a lab served last."""
        since, repositories = self._clock() - ONE_DAY, dict[int, float]()
        people = {person: served_at for person, served_at in self._served[lab].items() if served_at > since}
        for (repository, _), served_at in people.items():
            repositories[repository] = max(served_at, repositories.get(repository, 0.0))
        return LastServed(repositories, people)

    async def requests(self, repository_id: int, lab: str, target: str, person: int, since: float) -> JobRequests:
        """Count the requests of a target."""
        requesters = [
            requester
            for requested_at, requester in self._requested[repository_id, lab, target][-1000:]
            if requested_at >= since
        ]
        return JobRequests(len(requesters), requesters.count(person))

    async def durations(self, lab: str, target: str) -> list[float]:
        """Return nothing: titles are not simulated."""
        return []

    async def tested_pull(self, repository_id: int, about: TargetKey, sha: str) -> int | None:
        """Return nothing: results are not ingested here."""
        return None

    async def remove_old(self) -> int:
        """Remove nothing: the test reads all records at its end."""
        return 0

    async def _replace(self, stored: DeviceJob, changed: DeviceJob) -> DeviceJob | None:
        await self.meanwhile(changed)
        device = (changed.target, changed.slot)
        other_jobs = (job for job in self._labs[changed.lab].values() if job.id != changed.id)
        taken = changed.slot >= 0 and any((job.target, job.slot) == device for job in other_jobs)
        if taken or self.jobs[stored.id].version != stored.version:
            return None
        new = replace(changed, version=stored.version + 1)
        self._put(new)
        self._ring(new)
        return new

    def _ring(self, job: DeviceJob) -> None:
        self.wake(job)

    def _put(self, job: DeviceJob) -> None:
        stored = self.jobs.get(job.id)
        self.jobs[job.id] = job
        for index, belongs in (
            (self._labs[job.lab], job.state in CLAIMABLE),
            (self._open, job.is_open),
            (self._unshown, job.shown < job.to_show),
        ):
            if belongs:
                index[job.id] = job
            else:
                index.pop(job.id, None)
        if job.expires_at and (stored is None or stored.expires_at != job.expires_at):
            heapq.heappush(self._scheduled, (job.expires_at, job.id))
        if stored is None or stored.leased_at != job.leased_at:
            person = (job.repository_id, job.requested_by.id)
            self._served[job.lab][person] = max(job.leased_at, self._served[job.lab].get(person, 0.0))


async def _nothing(_: DeviceJob) -> None:
    return


def _ignore(_: DeviceJob) -> None:
    return
