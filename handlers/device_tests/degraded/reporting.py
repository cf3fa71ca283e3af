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
from handlers.device_tests.degraded.texts import issue_of_target, moment_text
from handlers.results.config import LAB_RESULTS

NAME = "degraded-targets"


@dataclass(frozen=True, slots=True)
class TargetChanged:
    """A target must be evaluated, at a moment (`at`) in seconds since 1970.

    `asked` is a digest that differs for each change, and for each hour in which the bot tries again.
    """

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
    """Note that the issue shows the state; if it could not be written, the sweep announces the change again."""
    if outcomes.failures:
        return Plan(why=texts.WHY_ISSUE_FAILED)
    key = degraded_key(context.repository.id, _canonical_target(context, written.lab, written.target))
    reported = replace(written.state, reported=True)
    return Plan((StoreRecord.of(key, None if written.state.restored else reported),))


# The handler needs no key of app.yaml: open issues must be closed even after `results` was removed.
@router.on(TARGET_CHANGED.name, name=NAME, conclude=ConcludeStage(ReportedTarget, note_reported))
async def report_target(context: Context) -> Plan:
    """Evaluate a target, store its state, and update its issue."""
    event, repository = TARGET_CHANGED.read(context.delivery.payload), context.repository
    target = _canonical_target(context, event.lab, event.target)
    store, name = context.part(RESULTS).store, target.repository
    judgements = await judge_targets(context.app_config, context.records, store, name, repository.id, event.at)
    judgement = next((judgement for judgement in judgements if judgement.target == target), None)
    if judgement is None or judgement.new_state is None or not judgement.must_report:
        return Plan(why=texts.WHY_SAME)
    results, state = context.config.of(LAB_RESULTS), judgement.new_state
    lab = results.labs.get(target.lab) if results else None
    settings = lab.targets.get(target.target) if lab else None
    tier = settings.tier if settings and settings.takes_requests else None
    issue = issue_of_target(target, state, tier, lab.contacts if lab else ())
    reason = texts.WHY_DEGRADED if is_degraded(state) else texts.WHY_RESTORED
    state_record = StoreRecord.of(degraded_key(repository.id, target), state)
    return Plan(
        (state_record, issue),
        why=reason.format(where=target.full_name, since=moment_text(state.since)),
        conclusion_basis=ReportedTarget(target.lab, target.target, state),
    )


def _canonical_target(context: Context, lab: str, target: str) -> TargetKey:
    return context.part(RESULTS).canonical(TargetKey(context.repository.full_name, lab, target))
