"""Choose the next job of a lab by sorting its whole queue: what the statements of the store must agree with."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from handlers.device_tests.model import DeviceJob, DeviceJobState
from handlers.device_tests.queue import LastServed, LimitsOf, PickedJob, free_slot, in_order


def pick_job(
    open_jobs: Sequence[DeviceJob], targets: Collection[str], limits_of: LimitsOf, served: LastServed
) -> PickedJob | None:
    """Choose among the queued jobs of a lab for these targets; None if there is none, or no device is free.

    `open_jobs` are all jobs of the lab that are queued or leased: a target is one set of devices, whatever the
    repository.
    """
    used: dict[str, set[int]] = defaultdict(set)
    # Of all repositories: several may name the same lab, and its devices exist once.
    for job in open_jobs:
        if job.state is DeviceJobState.LEASED:
            used[job.target].add(job.slot)
    for job in in_order(open_jobs, served):
        limits = limits_of(job.about) if job.target in targets else None
        slot = free_slot(limits, used[job.target]) if limits is not None else None
        if limits is not None and slot is not None:
            return PickedJob(job, slot, limits)
    return None
