"""Runs of hardware labs, from the bucket into our own store."""

from __future__ import annotations

import asyncio
import hashlib
from dataclasses import dataclass
from typing import ClassVar

from nightjar_formats.model import TargetKey

from bot.aws.bucket import Arrival
from bot.effects.remember import StoreRecord
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, EffectContext
from bot.results.service import RESULTS
from bot.results.state import RunState
from handlers.hardware import texts
from handlers.hardware.regression_state import unpacked
from handlers.hardware.service import INGEST


@dataclass(frozen=True, slots=True)
class IngestRun:
    """Read a run out of the bucket and store its results, or the reason why it was not taken."""

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    bucket: str
    key: str
    version: str

    @property
    def effect_key(self) -> str:
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
    def effect_key(self) -> str:
        """The commit and the check's name."""
        return f"ask:{self.sha}:{self.lab}/{self.on}"

    async def apply(self, context: EffectContext) -> Applied:
        """Announce it, once for each plan."""
        about, repository = TargetKey(context.repository.full_name, self.lab, self.on), context.repository
        new = await context.part(INGEST).ask_for_check(about, self.sha, repository.id, context.intent)
        return Applied(texts.CHECK_REQUESTED.format(name=about.check_name, sha=self.sha[:7]), changed=new)


@dataclass(frozen=True, slots=True)
class StoreReports:
    """Store which failures of a lab's target (`on`) a message reports, and how earlier ones ended.

    `sha` is the nightly run of the message. `failures` is compressed by `packed`, by how they ended; new failures have
    the empty key. The records of `then` are stored afterwards, in their order. They are not effects of their own,
    because an effect that failed is tried again after those that follow it.
    """

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    lab: str
    on: str
    sha: str
    failures: str
    then: tuple[StoreRecord, ...] = ()

    @property
    def effect_key(self) -> str:
        """The target, the nightly run and the failures."""
        digest = hashlib.sha256(self.failures.encode()).hexdigest()[:16]
        return f"reports:{self.lab}/{self.on}:{self.sha}:{digest}"

    async def apply(self, context: EffectContext) -> Applied:
        """Write the rows; writing them twice is the same as once."""
        results = context.part(RESULTS)
        about = results.canonical(TargetKey(context.repository.full_name, self.lab, self.on))
        ended = unpacked(self.failures)
        began = ended.pop("", [])
        report, aliases = results.store.failures.report, context.config.aliases
        await asyncio.to_thread(report, about, self.sha, began, ended, aliases)
        for record in self.then:
            await record.write(context.records)
        return Applied(texts.REPORTS_STORED.format(where=f"{self.lab}/{self.on}", sha=self.sha[:7]))
