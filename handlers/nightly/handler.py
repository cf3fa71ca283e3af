"""Move the nightly branch once a day to the newest fit commit, so that all labs test the same commit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from zoneinfo import ZoneInfo

from bot.core.page_paths import view_path
from bot.core.utc import iso_utc
from bot.effects.remember import StoreRecord
from bot.github.ours import Ours
from bot.plan.handler import ConcludeStage, Context, Plan, Router
from bot.plan.page_links import page_url
from bot.timers.timers import TIMER_EVENT, moment_of
from handlers.nightly.config import NIGHTLY as NIGHTLY_KEY
from handlers.nightly.effects import FOR_LABS, MarkNightly, PublishNightly
from handlers.nightly.texts import NIGHTLY_ISSUE, STATUS_DESCRIPTION
from handlers.results.config import LAB_RESULTS
from handlers.tracking_branches.conclusion import (
    Ended,
    StoredState,
    aim_after,
    how_it_ended,
    issue_about,
    moves,
    record_after,
    stored_aim,
    why_concluded,
)
from handlers.tracking_branches.decide import Step, TrackingScan, step_of
from handlers.tracking_branches.records import NIGHTLY, TRACKING, TRACKING_MOVES, moves_after
from handlers.tracking_branches.scan import ScanInProgress
from handlers.tracking_branches.texts import MOVE_FAILED

if TYPE_CHECKING:
    from bot.plan.outcome import EffectOutcomes
    from handlers.nightly.config import Nightly


router = Router()


@dataclass(frozen=True, slots=True)
class NightlyStep:
    """A step, and the date on which the timer ran, in its time zone and in ISO 8601."""

    step: Step
    day: str


async def nightly_conclusion(context: Context, taken: NightlyStep, outcomes: EffectOutcomes) -> Plan:
    """Report where the branch is once its move has ended: to labs, on the commit, and to people if the move failed."""
    stored = await StoredState.load(context, NIGHTLY, taken.step)
    ended = await how_it_ended(context, taken.step, outcomes)
    labs = context.config.of(LAB_RESULTS) is not None
    page = page_url(context, view_path(context.repository.full_name, "nightly"))
    return decide_nightly_conclusion(stored, taken, ended, context.repository.id, page=page, labs=labs)


def decide_nightly_conclusion(
    stored: StoredState, taken: NightlyStep, ended: Ended | None, repository_id: int, *, page: str, labs: bool
) -> Plan:
    """Return what to store and write once a step has ended; `labs`: whether the repository has labs, which read it.

    `page` is the address of the branch's page, empty without one.
    """
    step = taken.step
    aim = aim_after(stored.aim, step, day=taken.day)
    effects = stored_aim(NIGHTLY, repository_id, stored.aim, aim)
    if ended is None:
        return Plan(tuple(effects), MOVE_FAILED.format(branch=step.branch))
    record = record_after(stored.record, step, ended, aim)
    effects.append(StoreRecord.of(TRACKING.of(NIGHTLY, repository_id), record))
    if moves_now := moves_after(stored.moves, stored.record, record):
        effects.append(StoreRecord.of(TRACKING_MOVES.of(NIGHTLY, repository_id), moves_now))
    effects += issue_about(NIGHTLY, step, ended, NIGHTLY_ISSUE, has_issue=stored.has_issue)
    if aim and ended.head == aim["sha"] and not aim.get("marked"):
        effects.append(MarkNightly(aim["sha"], STATUS_DESCRIPTION.format(branch=step.branch, day=aim["day"]), page))
    if labs:
        effects.append(PublishNightly({member: dict(record)[member] for member in FOR_LABS}))
    return Plan(tuple(effects), why_concluded(step, ended))


@router.on(
    TIMER_EVENT.name, NIGHTLY, name=NIGHTLY, feature="nightly", conclude=ConcludeStage(NightlyStep, nightly_conclusion)
)
async def move_nightly(context: Context) -> Plan:
    """Scan the branch and the commits that it may move to, and decide."""
    nightly = context.config.of(NIGHTLY_KEY)
    assert nightly is not None, "the handler is asked where the feature is on"
    at = moment_of(context.delivery.payload)
    ours = Ours.of(context.me, context.config)
    scan = await ScanInProgress(context.github, context.repository.full_name, nightly, iso_utc(at), ours).scan()
    return plan_nightly(scan, nightly, at)


def plan_nightly(scan: TrackingScan, nightly: Nightly, at: float) -> Plan:
    """Return what to do about a scan that was scheduled for `at`, in seconds since 1970."""
    step = step_of(scan, nightly, at)
    # From the timer's time and not from the clock: a retry after midnight still belongs to the day before.
    day = datetime.fromtimestamp(at, ZoneInfo(nightly.timezone)).date().isoformat()
    return Plan(moves(step), step.why, conclusion_basis=NightlyStep(step, day))
