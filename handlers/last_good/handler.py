"""Move the last good branch every few minutes to the newest commit on which everything required is green."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from bot.core.utc import iso_utc
from bot.github.commits.ours import Ours
from bot.github.commits.refs import first_between
from bot.github.limits.ranks import Rank, ranked
from bot.plan.handler import ConcludeStage, Context, Plan, Router
from bot.timers.timers import TIMER_EVENT, moment_of
from handlers.last_good.config import LAST_GOOD as LAST_GOOD_KEY
from handlers.last_good.texts import LAST_GOOD_ISSUE
from handlers.tracking_branches.conclusion import BranchOutcome, StoredState, ended_step, move_effects, outcome_of_move
from handlers.tracking_branches.decide import Lag, Step, TrackingScan, decide_step
from handlers.tracking_branches.records import LAST_GOOD, TRACKING, reusable_verdicts
from handlers.tracking_branches.scan import ScanInProgress

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


async def last_good_conclusion(context: Context, last_good_step: LastGoodStep, outcomes: EffectOutcomes) -> Plan:
    """Store where the branch is once its move has ended, and write to people if the move failed."""
    state = await StoredState.load(context, LAST_GOOD, last_good_step.step)
    outcome = await outcome_of_move(context, last_good_step.step, outcomes)
    return decide_last_good_conclusion(state, last_good_step, outcome, context.repository.id)


def decide_last_good_conclusion(
    state: StoredState, last_good_step: LastGoodStep, outcome: BranchOutcome | None, repository_id: int
) -> Plan:
    """Return what to store and write once a step has ended; `outcome` is None if GitHub was unavailable."""
    lag = last_good_step.lag_at(outcome.head) if outcome else None
    members = {"lag": asdict(lag) if lag else None, "require": list(last_good_step.require)}
    step = last_good_step.step
    ended = ended_step(LAST_GOOD, repository_id, step, state, outcome, LAST_GOOD_ISSUE, record_members=members)
    return Plan((*ended.store_effects, *ended.issue_effects), ended.reason)


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
    assert rules is not None, "the handler runs only where the feature is on"
    moment = moment_of(context.delivery.payload)
    record: Mapping[str, Any] = await context.records.get(TRACKING.of(LAST_GOOD, context.repository.id)) or {}
    name, verdicts = context.repository.full_name, reusable_verdicts(record, rules.require)
    own_contexts = Ours.of(context.me, context.config)
    # A scan takes dozens of requests every few minutes; requests for which people wait go first.
    with ranked(Rank.SWEEP):
        scan = await ScanInProgress(context.github, name, rules, iso_utc(moment), own_contexts, verdicts).scan()
        scan = await _add_lag_since(context, scan, record)
    return plan_last_good(scan, rules, moment)


def plan_last_good(scan: TrackingScan, rules: LastGood, moment: float) -> Plan:
    """Return what to do about a scan that was scheduled for `moment`, in seconds since 1970."""
    step = decide_step(scan, rules, moment)
    basis = LastGoodStep(step, scan.lag, scan.lag_after, rules.require)
    return Plan(move_effects(step), step.why, conclusion_basis=basis)


async def _add_lag_since(context: Context, scan: TrackingScan, record: Mapping[str, Any]) -> TrackingScan:
    """Add to a scan since when the branch is behind, if that is further back than a scan reads.

    While the branch does not move, the oldest commit that it lacks stays the same, so one request is enough.
    """
    if scan.head is None or scan.lag is None or not scan.lag.commits or scan.lag.since:
        return scan
    stored = record.get("lag") or {}
    since = stored.get("since", "") if record.get("sha") == scan.head else ""
    if not since:
        repository, newest = context.repository.full_name, scan.scanned[0].commit
        since = await first_between(context.github, repository, scan.head, newest.sha)
    return replace(scan, lag=replace(scan.lag, since=since))
