"""Runs of hardware labs, from the bucket into our own store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bot.aws.bucket import Arrival
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, EffectContext
from bot.results.state import RunState


@dataclass(frozen=True, slots=True)
class IngestRun:
    """Read a run out of the bucket and store its results, or the reason why it was not taken."""

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    bucket: str
    key: str
    version: str

    @property
    def target(self) -> str:
        """The manifest."""
        return f"run:{self.bucket}:{self.key}:{self.version}"

    async def apply(self, context: EffectContext) -> Applied:
        """Take the run; one that was taken before is left as it is."""
        arrival = Arrival(self.bucket, self.key, self.version)
        run = await context.results.take(arrival, context.github, context.repository, context.config)
        text = f"{run.key.folder} {run.state}" + (f": {run.reason}" if run.reason else "")
        return Applied(text, changed=run.state is not RunState.WAITING)
