"""Runs of hardware labs, from the bucket into our own store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nightjar_formats.model import TargetKey

from bot.aws.bucket import Arrival
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, EffectContext
from bot.results.state import RunState
from handlers.results import texts
from handlers.results.ingest import INGEST


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
        """Ingest the run; a run that was ingested before stays as it is."""
        arrival = Arrival(self.bucket, self.key, self.version)
        run = await context.part(INGEST).take(arrival, context.github, context.repository, context.config)
        text = f"{run.key.folder} {run.state}" + (f": {run.reason}" if run.reason else "")
        return Applied(text, changed=run.state is not RunState.WAITING)


@dataclass(frozen=True, slots=True)
class RequestCheckRun:
    """Request that the check run of a lab's target (`on`) is written again, in order with its other writes."""

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    lab: str
    on: str
    sha: str

    @property
    def target(self) -> str:
        """The commit and the check's name."""
        return f"ask:{self.sha}:{self.lab}/{self.on}"

    async def apply(self, context: EffectContext) -> Applied:
        """Announce it, once for each plan."""
        about, repository = TargetKey(context.repository.full_name, self.lab, self.on), context.repository
        new = await context.part(INGEST).ask_for_check(about, self.sha, repository.id, context.intent)
        return Applied(texts.CHECK_REQUESTED.format(name=about.check_name, sha=self.sha[:7]), changed=new)
