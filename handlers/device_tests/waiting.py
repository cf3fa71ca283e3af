"""Estimate how long a job will wait for a device, from its place in the queue and the target's last tests."""

from __future__ import annotations

from typing import TYPE_CHECKING

from handlers.device_tests.model import DeviceJobState
from handlers.device_tests.queue import QueuePlace, expected_wait
from handlers.device_tests.targets import find_request_target

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from handlers.device_tests.model import DeviceJob
    from handlers.device_tests.store import JobStore


async def queue_place(store: JobStore, config: RepositoryConfig, job: DeviceJob) -> QueuePlace | None:
    """Return the place of a queued job; None for any other job, and if its target no longer accepts requests."""
    target = find_request_target(config, job.lab, job.target)
    if job.state is not DeviceJobState.QUEUED or target is None:
        return None
    tests_before = await store.tests_before(job)
    durations = await store.durations(job.lab, job.target)
    return QueuePlace(tests_before, expected_wait(tests_before, target.limits.slots, durations, target.limits.timeout))
