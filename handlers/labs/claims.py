"""Hand out jobs to labs that claim one; a claim waits if there is none."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from handlers.device_tests.bell import ClaimKind, JobBell
from handlers.device_tests.queue import LimitsOf, TargetLimits
from handlers.device_tests.store import ClaimedJob, JobStore

if TYPE_CHECKING:
    from handlers.labs.callers import LabCaller

SIDES = "sides"
"""What a lab's command must be able to do for a benchmark: run in two checkouts in turn."""
CLIENT_SECONDS = 2.0
"""Seconds between checks whether a waiting client is still connected: a client that has left must get no job."""


class JobClaims:
    """Claims of all labs in one process."""

    def __init__(self, store: JobStore, bell: JobBell, limits_of: LimitsOf) -> None:
        self._store = store
        self._bell = bell
        self._limits_of = limits_of

    def waiting(self, lab: str | None = None) -> int:
        """Return the number of waiting claims, of one lab or of all."""
        return self._bell.waiting(lab)

    async def claim(
        self,
        caller: LabCaller,
        targets: Collection[str],
        can: Collection[str] | None,
        wait: float,
        has_left: Callable[[], bool],
        stopping: asyncio.Event,
    ) -> ClaimedJob | None:
        """Return a job, after `wait` seconds at most; None if there is none, or the client has left.

        A caller gets only jobs of repositories in which it may act for the lab. `can` is what its command can do; None
        for an agent that knows only jobs of pull requests.
        """

        def limits_of(target: TargetKey) -> TargetLimits | None:
            return self._limits_of(target) if target.repository in caller.repositories else None

        is_able = can is not None
        kind = ClaimKind(caller.lab, frozenset(targets), caller.repositories, is_able)
        deadline = asyncio.get_running_loop().time() + wait
        with self._bell.listen(kind) as rung:
            while not has_left():
                # The bell is cleared before the query, so that a job which is queued meanwhile rings it again.
                rung.clear()
                try:
                    claimed = await self._store.claim(caller.lab, targets, limits_of, is_able=is_able)
                except BaseException:
                    self._bell.ring_next(kind)  # this claim could not take the job that it was woken for
                    raise
                if claimed is not None and claimed.job.few_tests.precision and SIDES not in (can or ()):
                    # The sweep announces its end.
                    await self._store.end_unable(claimed.job)
                    continue
                if claimed is not None:
                    self._bell.ring_next(kind)  # there may be more jobs
                    return claimed
                if not await _wait_for_bell(rung, deadline, has_left, stopping):
                    break
        return None


async def _wait_for_bell(
    rung: asyncio.Event, deadline: float, has_left: Callable[[], bool], stopping: asyncio.Event
) -> bool:
    """Wait until there may be a job; False if the time is over, the client has left, or the server stops."""
    loop = asyncio.get_running_loop()
    tasks = [asyncio.ensure_future(rung.wait()), asyncio.ensure_future(stopping.wait())]
    try:
        while (remaining := deadline - loop.time()) > 0 and not has_left() and not stopping.is_set():
            await asyncio.wait(tasks, timeout=min(remaining, CLIENT_SECONDS), return_when=asyncio.FIRST_COMPLETED)
            if rung.is_set():
                return True
        return False
    finally:
        for task in tasks:
            task.cancel()
