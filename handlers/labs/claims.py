"""Give jobs to labs that ask; a lab without a job waits for one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from handlers.device_tests.bell import JobBell
from handlers.device_tests.queue import LimitsOf, TargetLimits
from handlers.device_tests.store import ClaimedJob, JobStore

if TYPE_CHECKING:
    from handlers.device_tests.model import DeviceJob
    from handlers.labs.callers import LabSpeaker

CLIENT_SECONDS = 2.0
"""Seconds between checks whether a waiting client is still connected: a client that has left must get no job."""


class JobClaims:
    """Claims of all labs in one process."""

    def __init__(self, store: JobStore, bell: JobBell, limits_of: LimitsOf) -> None:
        self._store = store
        self._bell = bell
        self._limits_of = limits_of

    def waiting(self, lab: str | None = None) -> int:
        """Return how many claims wait, of one lab or of all."""
        return self._bell.waiting(lab)

    async def claim(
        self,
        speaker: LabSpeaker,
        targets: Collection[str],
        wait: float,
        has_left: Callable[[], bool],
        stopping: asyncio.Event,
    ) -> ClaimedJob | None:
        """Return a job, after `wait` seconds at most; None if there is none, or the client has left.

        A speaker gets only jobs of repositories in which it speaks for the lab.
        """

        def limits_of(job: DeviceJob) -> TargetLimits | None:
            return self._limits_of(job) if job.repository in speaker.repositories else None

        until = asyncio.get_running_loop().time() + wait
        with self._bell.listen(speaker.lab) as rung:
            while not has_left():
                # Before the query, so that a job which is queued during it rings again.
                rung.clear()
                if (claimed := await self._store.claim(speaker.lab, targets, limits_of)) is not None:
                    return claimed
                if not await _heard(rung, until, has_left, stopping):
                    break
        return None


async def _heard(rung: asyncio.Event, until: float, has_left: Callable[[], bool], stopping: asyncio.Event) -> bool:
    """Wait until there may be a job; False: the time is over, the client has left, or the server stops."""
    loop = asyncio.get_running_loop()
    waits = [asyncio.ensure_future(rung.wait()), asyncio.ensure_future(stopping.wait())]
    try:
        while (left := until - loop.time()) > 0 and not has_left() and not stopping.is_set():
            await asyncio.wait(waits, timeout=min(left, CLIENT_SECONDS), return_when=asyncio.FIRST_COMPLETED)
            if rung.is_set():
                return True
        return False
    finally:
        for one in waits:
            one.cancel()
