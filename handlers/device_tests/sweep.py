"""Change jobs when their time is over, so that no job and no check run stays open for ever.

Every step is safe to repeat, by any replica: the sweep finds it in the database until it is done.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey

from bot.core.parts import PartKey
from bot.engine.sweeps import LastRun, hours_between, last_run
from handlers.device_tests import texts
from handlers.device_tests.effects import announce_step, step_guid
from handlers.device_tests.queue import TargetLimits
from handlers.device_tests.targets import find_request_target

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.internal import Announce
    from bot.engine.jobs.journal import Journal
    from handlers.device_tests.model import DeviceJob
    from handlers.device_tests.store import JobStore

TICK = "* * * * * */15"
"""When the sweep runs; the last field counts seconds."""


class JobSweep:
    """Ends jobs that have waited too long, and announces outdated check runs.

    `accept` stores an internal event, once for each GUID.
    """

    def __init__(
        self,
        config: Config,
        store: JobStore,
        journal: Journal,
        *,
        accept: Announce,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._config = config
        self._store = store
        self._journal = journal
        self._accept = accept
        self._clock = clock

    def limits_of(self, target: TargetKey) -> TargetLimits | None:
        """Return the limits of a target in app.yaml; None if its jobs cannot be handed out any longer."""
        known_target = find_request_target(self._config.repository(target.repository), target.lab, target.target)
        return known_target.limits if known_target else None

    async def has_work(self) -> bool:
        """Return whether `tick` would do anything."""
        unfinished = await self._store.unfinished()
        return unfinished.must_change or (unfinished.has_open and bool(await self._removed_targets()))

    async def _removed_targets(self) -> list[TargetKey]:
        """Return the targets with open jobs that app.yaml no longer has."""
        return [target for target in await self._store.open_targets() if self.limits_of(target) is None]

    async def tick(self) -> str:
        """Sweep once; return what was done, for the log."""
        for target in await self._removed_targets():
            for job in await self._store.open_of_target(target):
                await self._store.remove_target(job)
        expired = 0
        while jobs := await self._store.expire():
            expired += len(jobs)
        announced = 0
        # The newest heads come first (docs/decisions/newest-heads-first.md). The next tick continues after a batch.
        for job in await self._store.unshown():
            announced += await self._announce(job)
        removed = await self._store.remove_old()
        return texts.SWEEP_DONE.format(expired=expired, announced=announced, removed=removed)

    async def _announce(self, job: DeviceJob) -> bool:
        """Announce the step that an outdated check run should show; return whether that stored a new event.

        If the event was announced before and handled without success, it is announced again once an hour.
        """
        if await announce_step(self._accept, job):
            return True
        # DONE includes a write that GitHub refused, so the check run may still be outdated.
        if await last_run(self._journal, step_guid(job)) not in (LastRun.FAILED, LastRun.DONE):
            return False
        if self._config.repository(job.repository) is None:
            # app.yaml no longer names it, and the App can most likely no longer write there. One try is enough:
            # GitHub marks the check run as stale after two weeks.
            await self._store.show(job.lab, job.id, job.to_show)
            return False
        return await announce_step(self._accept, job, str(hours_between(0.0, self._clock())))


SWEEP = PartKey[JobSweep]("device-job-sweep")
