"""Store that a target is degraded or restored, and update its issue.

The state is stored first, so that it applies even if no issue can be written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from nightjar_formats.model import TargetKey

from bot.effects.remember import StoreRecord
from bot.engine.internal import InternalEvent
from bot.plan.handler import ConcludeStage, Context, Plan, Router
from bot.plan.outcome import EffectOutcomes
from bot.results.service import RESULTS
from handlers.device_tests.degraded import texts
from handlers.device_tests.degraded.rule import DegradedTarget, is_degraded
from handlers.device_tests.degraded.targets import degraded_key, judge_targets
from handlers.device_tests.degraded.words import issue_of_target, moment_text
from handlers.results.config import LAB_RESULTS

NAME = "degraded-targets"


@dataclass(frozen=True, slots=True)
class TargetChanged:
    """A target must be evaluated, at a moment in seconds since 1970; `asked` distinguishes changes, and later tries."""

    lab: str
    target: str
    at: float
    asked: str


TARGET_CHANGED = InternalEvent(
    "nightjar.target-changed",
    TargetChanged,
    guid=lambda repository, event: f"target-changed:{repository}:{event.lab}/{event.target}:{event.asked}",
    lock=lambda repository, event: f"target-changed:{repository}:{event.lab}/{event.target}",
)


@dataclass(frozen=True, slots=True)
class ReportedTarget:
    """The state of a target that its issue must show."""

    lab: str
    target: str
    state: DegradedTarget


router = Router()


async def note_reported(context: Context, written: ReportedTarget, outcomes: EffectOutcomes) -> Plan:
    """Note that the issue says it, unless it could not be written: then the sweep announces it again."""
    if outcomes.failures:
        return Plan(why=texts.WHY_ISSUE_FAILED)
    key = degraded_key(context.repository.id, _about(context, written.lab, written.target))
    reported = replace(written.state, reported=True)
    return Plan((StoreRecord.of(key, None if written.state.restored else reported),))


# Not bound to a key of app.yaml: open issues must be closed even after `results` was removed.
@router.on(TARGET_CHANGED.name, name=NAME, conclude=ConcludeStage(ReportedTarget, note_reported))
async def report_target(context: Context) -> Plan:
    """Evaluate a target, store its state, and update its issue."""
    event, repository = TARGET_CHANGED.read(context.delivery.payload), context.repository
    about = _about(context, event.lab, event.target)
    store, named = context.part(RESULTS).store, about.repository
    every = await judge_targets(context.app_config, context.records, store, named, repository.id, event.at)
    judged = next((one for one in every if one.about == about), None)
    if judged is None or judged.now is None or not judged.is_to_report:
        return Plan(why=texts.WHY_SAME)
    results, state = context.config.of(LAB_RESULTS), judged.now
    lab = results.labs.get(about.lab) if results else None
    settings = lab.targets.get(about.target) if lab else None
    tier = settings.tier if settings and settings.takes_requests else None
    issue = issue_of_target(about, state, tier, lab.contacts if lab else ())
    why = texts.WHY_DEGRADED if is_degraded(state) else texts.WHY_RESTORED
    stored = StoreRecord.of(degraded_key(repository.id, about), state)
    basis = ReportedTarget(about.lab, about.target, state)
    said = why.format(where=about.full_name, since=moment_text(state.since))
    return Plan((stored, issue), why=said, conclusion_basis=basis)


def _about(context: Context, lab: str, target: str) -> TargetKey:
    return context.part(RESULTS).canonical(TargetKey(context.repository.full_name, lab, target))
