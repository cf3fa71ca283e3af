"""Runs of hardware labs, from the bucket into our own store."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nightjar_formats.model import TargetKey

from bot.aws.bucket import Arrival
from bot.core.events import Repository
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, EffectContext, StoreContext, StoredEffect
from bot.results.deliveries import CHECK_EVENT, CheckEvent
from bot.results.service import RESULTS
from bot.results.state import RunState
from handlers.results import texts
from handlers.results.ingest import INGEST


@dataclass(frozen=True, slots=True)
class IngestRun(Arrival):
    """Read the run that arrived and store its results, or the reason why they were not stored."""

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    @property
    def effect_key(self) -> str:
        """The manifest."""
        return f"run:{self.bucket}:{self.key}:{self.version}"

    async def apply(self, context: EffectContext) -> Applied:
        """Ingest the run; a run that was ingested before stays as it is."""
        run = await context.part(INGEST).ingest(self, context.github, context.repository, context.config)
        text = f"{run.key.folder} {run.state}" + (f": {run.reason}" if run.reason else "")
        return Applied(text, changed=run.state is not RunState.WAITING)


@dataclass(frozen=True, slots=True)
class RequestCheckRun(StoredEffect):
    """Request that the check run of a lab's target (`on`) is written again, in order with its other writes."""

    lab: str
    on: str
    sha: str

    @property
    def effect_key(self) -> str:
        """The commit and the check's name."""
        return f"ask:{self.sha}:{self.lab}/{self.on}"

    async def store(self, context: StoreContext) -> Applied:
        """Announce the request, once for each plan."""
        target = context.part(RESULTS).canonical(TargetKey(context.repository.full_name, self.lab, self.on))
        repository = Repository(context.repository.id, target.repository, None)
        check_event = CheckEvent(self.lab, self.on, self.sha, revision=0, again=True, asked=context.intent)
        new = await context.changes.announce(CHECK_EVENT, repository, check_event)
        return Applied(texts.CHECK_REQUESTED.format(name=target.check_name, sha=self.sha[:7]), changed=new)
