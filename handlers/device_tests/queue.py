"""Choose the next job of a lab: by repository, then by person, then by age. Pure.

The repository and the person that got a job longest ago are next, so busy ones don't block the others.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from handlers.device_tests.model import DeviceJob, DeviceJobState


@dataclass(frozen=True, slots=True)
class TargetLimits:
    """The number of jobs that a target runs at once, and the time limit of each in seconds."""

    slots: int
    timeout: float


LimitsOf = Callable[[DeviceJob], TargetLimits | None]
"""Returns the settings of a job's target; None if it no longer accepts requests, so that no lab gets the job."""


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
class QueuePlace:
    """The number of tests before a job, and the expected seconds until its test begins."""

    jobs_before: int
    seconds: float


def pick_job(
    open_jobs: Sequence[DeviceJob], targets: Collection[str], limits_of: LimitsOf, served: LastServed
) -> PickedJob | None:
    """Choose among the queued jobs of a lab for these targets; None if there is none, or no device is free.

    `open_jobs` are all jobs of the lab that are queued or leased: a target is one set of devices, whatever the
    repository. The newest head of a pull request comes first.
    """
    used: dict[str, set[int]] = defaultdict(set)
    # Of all repositories: several may name the same lab, and its devices exist once.
    for job in open_jobs:
        if job.state is DeviceJobState.LEASED:
            used[job.target].add(job.slot)
    for job in in_order(open_jobs, served):
        limits = limits_of(job) if job.target in targets else None
        if limits is None:
            continue
        free = (slot for slot in range(limits.slots) if slot not in used[job.target])
        if (slot := next(free, None)) is not None:
            return PickedJob(job, slot, limits)
    return None


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


def place_in_queue(job: DeviceJob, open_jobs: Sequence[DeviceJob], served: LastServed) -> int:
    """Return how many jobs of the same target are before a queued one, including running jobs."""
    jobs_of_target = [open_job for open_job in open_jobs if open_job.target == job.target]
    running = sum(target_job.state is DeviceJobState.LEASED for target_job in jobs_of_target)
    ids = [queued_job.id for queued_job in in_order(jobs_of_target, served)]
    return running + (ids.index(job.id) if job.id in ids else len(ids))


def expected_wait(place: int, slots: int, durations: Sequence[float], timeout: float) -> float:
    """Return in how many seconds a device should be free for a job with `place` jobs before it.

    `durations` has the seconds of the target's last tests; without any, half of its time limit is assumed.
    """
    # The median, because a single slow test must not change the estimate.
    typical = sorted(durations)[len(durations) // 2] if durations else timeout / 2
    return (place // max(1, slots)) * typical if place >= slots else 0.0
