"""Store in the result store which failures a message reported."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import ClassVar

from nightjar_formats.model import TargetKey

from bot.effects.remember import StoreRecord
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, EffectContext
from bot.results.service import RESULTS
from bot.results.store.failures.failures import store_reports
from handlers.regressions import texts
from handlers.regressions.decide import unpack_failures
from handlers.results.config import RENAMES


@dataclass(frozen=True, slots=True)
class StoreReports:
    """Store which failures of a lab's target (`on`) a message reports, and how earlier ones ended.

    `sha` is the nightly run of the message. `failures` has them by how they ended, compressed by `pack_failures`; new
    failures have the empty key. The records of `then` are stored afterwards, in their order. They are not effects of
    their own, because the engine tries a failed effect again only after the effects that follow it.
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
        target = results.canonical(TargetKey(context.repository.full_name, self.lab, self.on))
        ended = unpack_failures(self.failures)
        began = ended.pop("", [])
        aliases, moment = context.config.of(RENAMES).aliases, results.store.clock()
        await results.write(store_reports, target, self.sha, moment, began, ended, aliases)
        changes = context.new_changes()
        for record in self.then:
            changes.write(record.key, record.stored)
        await changes.store()
        return Applied(texts.REPORTS_STORED.format(where=f"{self.lab}/{self.on}", sha=self.sha[:7]))
