"""Move the nightly branch once a day to the newest fit commit, so that all labs test the same commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from bot.core.page_paths import view_path
from bot.core.utc import iso_utc
from bot.effects.remember import StoreRecord
from bot.github.commits.ours import Ours
from bot.plan.handler import ConcludeStage, Context, Plan, Router
from bot.plan.page_links import page_url
from bot.timers.timers import TIMER_EVENT, moment_of
from handlers.nightly.config import NIGHTLY as NIGHTLY_KEY
from handlers.nightly.effects import FOR_LABS, MarkNightly, PublishNightly
from handlers.nightly.texts import NIGHTLY_ISSUE, STATUS_DESCRIPTION
from handlers.results.config import LAB_RESULTS
from handlers.tracking_branches.conclusion import BranchOutcome, StoredState, ended_step, move_effects, outcome_of_move
from handlers.tracking_branches.decide import Step, TrackingScan, decide_step
from handlers.tracking_branches.records import NIGHTLY, TRACKING_MOVES, moves_to_store
from handlers.tracking_branches.scan import ScanInProgress

if TYPE_CHECKING:
    from bot.plan.outcome import EffectOutcomes
    from handlers.nightly.config import Nightly


router = Router()


@dataclass(frozen=True, slots=True)
class NightlyStep:
    """A step, and the date on which the timer ran, in its time zone and in ISO 8601."""

    step: Step
    day: str


async def nightly_conclusion(context: Context, nightly_step: NightlyStep, outcomes: EffectOutcomes) -> Plan:
    """Report where the branch is once its move has ended: to labs, on the commit, and to people if the move failed."""
    state = await StoredState.load(context, NIGHTLY, nightly_step.step)
    outcome = await outcome_of_move(context, nightly_step.step, outcomes)
    has_labs = context.config.of(LAB_RESULTS) is not None
    page = page_url(context, view_path(context.repository.full_name, "nightly"))
    return decide_nightly_conclusion(state, nightly_step, outcome, context.repository.id, page=page, has_labs=has_labs)


def decide_nightly_conclusion(
    state: StoredState,
    nightly_step: NightlyStep,
    outcome: BranchOutcome | None,
    repository_id: int,
    *,
    page: str,
    has_labs: bool,
) -> Plan:
    """Return what to store and write once a step has ended; `outcome` is None if GitHub was unavailable.

    `page` is the address of the branch's page, empty without one. `has_labs`: labs read the published file.
    """
    step = nightly_step.step
    members = {"day": nightly_step.day}
    ended = ended_step(NIGHTLY, repository_id, step, state, outcome, NIGHTLY_ISSUE, step_members=members)
    last_step, effects = ended.last_step, [*ended.store_effects]
    if outcome is None or ended.state is None:
        return Plan(tuple(effects), ended.reason)
    if new_moves := moves_to_store(state.moves, state.record, ended.state):
        effects.append(StoreRecord.of(TRACKING_MOVES.of(NIGHTLY, repository_id), new_moves))
    effects += ended.issue_effects
    if last_step and outcome.head == last_step["sha"] and not last_step.get("marked"):
        description = STATUS_DESCRIPTION.format(branch=step.branch, day=last_step["day"])
        effects.append(MarkNightly(last_step["sha"], description, page))
    if has_labs:
        effects.append(PublishNightly({member: dict(ended.state)[member] for member in FOR_LABS}))
    return Plan(tuple(effects), ended.reason)


@router.on(
    TIMER_EVENT.name, NIGHTLY, name=NIGHTLY, feature="nightly", conclude=ConcludeStage(NightlyStep, nightly_conclusion)
)
async def move_nightly(context: Context) -> Plan:
    """Scan the branch and the commits that it may move to, and decide."""
    rules = context.config.of(NIGHTLY_KEY)
    assert rules is not None, "the handler runs only where the feature is on"
    moment = moment_of(context.delivery.payload)
    own_contexts = Ours.of(context.me, context.config)
    repository = context.repository.full_name
    scan = await ScanInProgress(context.github, repository, rules, iso_utc(moment), own_contexts).scan()
    return plan_nightly(scan, rules, moment)


def plan_nightly(scan: TrackingScan, rules: Nightly, moment: float) -> Plan:
    """Return what to do about a scan that was scheduled for `moment`, in seconds since 1970."""
    step = decide_step(scan, rules, moment)
    # From the timer's time and not from the clock: a retry after midnight still belongs to the day before.
    day = datetime.fromtimestamp(moment, ZoneInfo(rules.timezone)).date().isoformat()
    return Plan(move_effects(step), step.why, conclusion_basis=NightlyStep(step, day))
