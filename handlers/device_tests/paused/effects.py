"""End the jobs that wait for a device of a paused target."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nightjar_formats.model import TargetKey

from bot.core.listing import counted
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, EffectContext
from bot.results.service import RESULTS
from handlers.device_tests.effects import announce_step
from handlers.device_tests.model import JobEnd
from handlers.device_tests.paused import texts
from handlers.device_tests.store import JOBS


@dataclass(frozen=True, slots=True)
class CancelPausedJobs:
    """Cancel the jobs of a target that no lab has claimed. Running tests continue."""

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    lab: str
    on: str

    @property
    def effect_key(self) -> str:
        """The target."""
        return f"paused-jobs:{self.lab}/{self.on}"

    async def apply(self, context: EffectContext) -> Applied:
        """Cancel the jobs, and announce their check runs."""
        target = context.part(RESULTS).canonical(TargetKey(context.repository.full_name, self.lab, self.on))
        store, ended = context.part(JOBS), 0
        for job in await store.open_of_target(target):
            cancelled = await store.cancel(job, JobEnd.PAUSED, also_running=False)
            ended += not cancelled.is_open
            await announce_step(context.announce, cancelled)
        return Applied(texts.CANCELLED.format(jobs=counted(ended, "job"), target=target.full_name), changed=bool(ended))
