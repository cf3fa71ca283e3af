"""Choose the next job of a lab: by repository, then by person, then by age. Pure.

The repository and the person that got a job longest ago are next, so busy ones don't block the others. A pull request
keeps its place through a push, and its newest head comes first.

`in_order` is the whole order. To hand out a job, the store does not sort the queue: the database finds the next job of
the next repository by its indices (`rows.NEXT_OF_QUEUES`). `tests/devices/picking.py` compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from nightjar_formats.model import TargetKey

from handlers.device_tests.model import DeviceJob, DeviceJobState


@dataclass(frozen=True, slots=True)
class TargetLimits:
    """The number of jobs that a target runs at once, and the time limit of each in seconds."""

    slots: int
    timeout: float


LimitsOf = Callable[[TargetKey], TargetLimits | None]
"""Returns the settings of a target; None if it no longer accepts requests, so that no lab gets its jobs."""


@dataclass(frozen=True, slots=True)
class LastServed:
    """The last hand-outs of a lab, by repository, and by person in it; seconds since 1970."""

    repositories: Mapping[int, float] = field(default_factory=dict)
    people: Mapping[tuple[int, int], float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PickedJob:
    """The job that is handed out, the device that it gets, and what its target allows."""

    job: DeviceJob
    slot: int
    limits: TargetLimits


@dataclass(frozen=True, slots=True)
class FreeDevice:
    """A device of a target that has no job, and what the target allows."""

    slot: int
    limits: TargetLimits


@dataclass(frozen=True, slots=True)
class QueueOfRepository:
    """The queued jobs of a repository for a target of a lab.

    `served_at` is when the repository last got a job of the lab within the last day, in seconds since 1970; else 0.0.
    """

    target: TargetKey
    served_at: float = 0.0

    @property
    def name(self) -> str:
        """The repository and the target; neither has a space."""
        return f"{self.target.repository} {self.target.target}"


@dataclass(frozen=True, slots=True)
class QueuePlace:
    """The number of tests before a job, and the expected seconds until its test begins."""

    jobs_before: int
    seconds: float


def next_queues(
    queues: Iterable[QueueOfRepository], limits_of: LimitsOf, used: Mapping[str, Collection[int]]
) -> list[tuple[QueueOfRepository, FreeDevice]]:
    """Return the queues whose repository is next, each with a free device; none if no device is free.

    There may be several of one repository, for several targets, and of repositories that got no job within a day.
    `used` has the devices that are in use, by target: a target is one set of devices, whatever the repository.
    """
    free: list[tuple[QueueOfRepository, FreeDevice]] = []
    for queue in queues:
        limits = limits_of(queue.target)
        if limits is not None and (slot := free_slot(limits, used.get(queue.target.target, ()))) is not None:
            free.append((queue, FreeDevice(slot, limits)))
    first = min((queue.served_at for queue, _ in free), default=0.0)
    return [(queue, device) for queue, device in free if queue.served_at == first]


def free_slot(limits: TargetLimits, used: Collection[int]) -> int | None:
    """Return the number of the first free device of a target; None if all are in use."""
    return next((slot for slot in range(limits.slots) if slot not in used), None)


def in_order(jobs: Iterable[DeviceJob], served: LastServed) -> list[DeviceJob]:
    """Return the queued jobs in the order in which a lab would get them, if hand-outs did not change that order."""
    queued = [job for job in jobs if job.state is DeviceJobState.QUEUED]
    first: dict[tuple[int, int], float] = {}
    for job in queued:
        pull = (job.repository_id, job.pull_request)
        first[pull] = min(first.get(pull, job.queued_at), job.queued_at)

    def rank(job: DeviceJob) -> tuple[float, float, float, int, float, str]:
        pull = (job.repository_id, job.pull_request)
        person = (job.repository_id, job.requested_by.id)
        # A pull request keeps its place through a push, and its newest head comes first.
        return (
            served.repositories.get(job.repository_id, 0.0),
            served.people.get(person, 0.0),
            first[pull],
            job.pull_request,
            -job.requested_at,
            job.id,
        )

    return sorted(queued, key=rank)


@dataclass(frozen=True, slots=True)
class QueuedJobs:
    """The queued jobs that a person has for a target: how many, and how many of them are older than a given job."""

    repository_id: int
    person: int
    jobs: int
    earlier: int


def jobs_before(job: DeviceJob, queued: Iterable[QueuedJobs], served: LastServed) -> int:
    """Return how many of the queued jobs of its target are before a job, in the order of `in_order`."""

    def rank(repository_id: int, person: int) -> tuple[float, float]:
        return served.repositories.get(repository_id, 0.0), served.people.get((repository_id, person), 0.0)

    own_rank, count = rank(job.repository_id, job.requested_by.id), 0
    for jobs in queued:
        rank_of_person = rank(jobs.repository_id, jobs.person)
        count += jobs.jobs if rank_of_person < own_rank else jobs.earlier if rank_of_person == own_rank else 0
    return count


def expected_wait(place: int, slots: int, durations: Sequence[float], timeout: float) -> float:
    """Return in how many seconds a device should be free for a job with `place` jobs before it.

    `durations` has the seconds of the target's last tests; without any, half of its time limit is assumed.
    """
    # The median, because a single slow test must not change the estimate.
    typical = sorted(durations)[len(durations) // 2] if durations else timeout / 2
    return (place // max(1, slots)) * typical if place >= slots else 0.0
