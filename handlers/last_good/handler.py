"""Move the last good branch every few minutes to the newest commit on which everything required is green."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from bot.core.utc import iso_utc
from bot.effects.remember import StoreRecord
from bot.github.ours import Ours
from bot.github.ranks import Rank, ranked
from bot.github.refs import first_between
from bot.plan.handler import ConcludeStage, Context, Plan, Router
from bot.timers.timers import TIMER_EVENT, moment_of
from handlers.last_good.config import LAST_GOOD as LAST_GOOD_KEY
from handlers.last_good.texts import LAST_GOOD_ISSUE
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
from handlers.tracking_branches.decide import Lag, Step, TrackingScan, step_of
from handlers.tracking_branches.records import LAST_GOOD, TRACKING, known_of
from handlers.tracking_branches.scan import ScanInProgress
from handlers.tracking_branches.texts import MOVE_FAILED

if TYPE_CHECKING:
    from bot.plan.outcome import EffectOutcomes
    from handlers.last_good.config import LastGood


router = Router()


@dataclass(frozen=True, slots=True)
class LastGoodStep:
    """A step, and how far the branch is behind: `lag` before the move, `lag_after` after it.

    `require` are the patterns of the verdicts: verdicts for other patterns must not be reused.
    """

    step: Step
    lag: Lag | None
    lag_after: Lag | None
    require: tuple[str, ...]

    def lag_at(self, head: str | None) -> Lag | None:
        """Return how far the branch is behind if its head is this commit.

        Return None if somebody else has moved it: the next scan computes the lag.
        """
        return {self.step.before: self.lag, self.step.chosen: self.lag_after}.get(head or "")


async def last_good_conclusion(context: Context, taken: LastGoodStep, outcomes: EffectOutcomes) -> Plan:
    """Store where the branch is once its move has ended, and write to people if the move failed."""
    stored = await StoredState.load(context, LAST_GOOD, taken.step)
    ended = await how_it_ended(context, taken.step, outcomes)
    return decide_last_good_conclusion(stored, taken, ended, context.repository.id)


def decide_last_good_conclusion(
    stored: StoredState, taken: LastGoodStep, ended: Ended | None, repository_id: int
) -> Plan:
    """Return what to store and write once a step has ended."""
    step = taken.step
    aim = aim_after(stored.aim, step)
    effects = stored_aim(LAST_GOOD, repository_id, stored.aim, aim)
    if ended is None:
        return Plan(tuple(effects), MOVE_FAILED.format(branch=step.branch))
    lag = taken.lag_at(ended.head)
    more = {"lag": asdict(lag) if lag else None, "require": list(taken.require)}
    record = record_after(stored.record, step, ended, aim, **more)
    effects.append(StoreRecord.of(TRACKING.of(LAST_GOOD, repository_id), record))
    effects += issue_about(LAST_GOOD, step, ended, LAST_GOOD_ISSUE, has_issue=stored.has_issue)
    return Plan(tuple(effects), why_concluded(step, ended))


@router.on(
    TIMER_EVENT.name,
    LAST_GOOD,
    name=LAST_GOOD,
    feature="last_good",
    conclude=ConcludeStage(LastGoodStep, last_good_conclusion),
)
async def move_last_good(context: Context) -> Plan:
    """Scan the branch and the commits that it may move to, and decide."""
    rules = context.config.of(LAST_GOOD_KEY)
    assert rules is not None, "the handler is asked where the feature is on"
    at = moment_of(context.delivery.payload)
    record: Mapping[str, Any] = await context.records.get(TRACKING.of(LAST_GOOD, context.repository.id)) or {}
    name, known = context.repository.full_name, known_of(record, rules.require)
    ours = Ours.of(context.me, context.config)
    # A scan takes dozens of requests every few minutes; what people wait for goes first.
    with ranked(Rank.SWEEP):
        scan = await ScanInProgress(context.github, name, rules, iso_utc(at), ours, known).scan()
        scan = await _with_since(context, scan, record)
    return plan_last_good(scan, rules, at)


def plan_last_good(scan: TrackingScan, rules: LastGood, at: float) -> Plan:
    """Return what to do about a scan that was scheduled for `at`, in seconds since 1970."""
    step = step_of(scan, rules, at)
    return Plan(moves(step), step.why, conclusion_basis=LastGoodStep(step, scan.lag, scan.lag_after, rules.require))


async def _with_since(context: Context, scan: TrackingScan, record: Mapping[str, Any]) -> TrackingScan:
    """Add since when the branch is behind, if that is further back than a scan reads.

    While the branch does not move, the oldest commit that it lacks stays the same, so one request is enough.
    """
    if scan.before is None or scan.lag is None or not scan.lag.commits or scan.lag.since:
        return scan
    stored = record.get("lag") or {}
    since = stored.get("since", "") if record.get("sha") == scan.before else ""
    if not since:
        repository, newest = context.repository.full_name, scan.scanned[0].commit
        since = await first_between(context.github, repository, scan.before, newest.sha)
    return replace(scan, lag=replace(scan.lag, since=since))
