"""Which targets accept requests now, and why others do not: they are paused, or degraded to the nightly tier."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot.results.settings.targets import NIGHTLY_ONLY
from handlers.device_tests.degraded.rule import DegradedTarget, effective_tier
from handlers.device_tests.degraded.targets import degraded_targets
from handlers.device_tests.degraded.texts import refusal
from handlers.device_tests.paused.records import paused_targets
from handlers.device_tests.paused.rule import TargetPause
from handlers.device_tests.paused.texts import paused_refusal
from handlers.device_tests.targets import RequestTarget

if TYPE_CHECKING:
    from bot.plan.handler import Context


@dataclass(frozen=True, slots=True)
class Availability:
    """The targets of a repository that are degraded by a tier, and those that are paused, by LAB/TARGET."""

    degraded: Mapping[str, DegradedTarget]
    paused: Mapping[str, TargetPause]

    @classmethod
    async def of(cls, context: Context, moment: float | None = None) -> Availability:
        """Read which targets are degraded, and which are paused at a moment; by default, when the delivery arrived."""
        records, repository_id = context.records, context.repository.id
        moment = context.delivery.received_at if moment is None else moment
        return cls(await degraded_targets(records, repository_id), await paused_targets(records, repository_id, moment))

    def accepting(self, targets: Iterable[RequestTarget]) -> list[RequestTarget]:
        """Return the targets that accept requests now, with their current tiers."""
        able = []
        for target in targets:
            tier = effective_tier(target.settings.tier, self.degraded.get(target.full_name))
            # A target that drops to the nightly tier accepts no requests.
            if tier < NIGHTLY_ONLY and target.full_name not in self.paused:
                able.append(replace(target, settings=target.settings.model_copy(update={"tier": tier})))
        return able

    def refusal(self, target: RequestTarget) -> str:
        """Say why a target that is not among the accepting ones accepts no requests."""
        name = target.full_name
        return paused_refusal(name, self.paused[name]) if name in self.paused else refusal(name, self.degraded[name])
