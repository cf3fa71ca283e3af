"""Decide what to write after the move of a tracking branch: its records, and the issue for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from bot.effects.issues import ISSUE, EnsureIssue
from bot.effects.refs import MoveBranch
from bot.effects.remember import StoreRecord
from bot.engine.processor import EffectState
from bot.github.commits.refs import branch_head
from handlers.tracking_branches.records import TRACKING, TRACKING_MOVES, TRACKING_STEP
from handlers.tracking_branches.texts import BRANCH_AT, CANNOT_MOVE, ISSUE_TITLE, MOVE_FAILED, NO_BRANCH

if TYPE_CHECKING:
    from bot.plan.effect import Effect
    from bot.plan.handler import Context
    from bot.plan.outcome import EffectOutcomes
    from handlers.tracking_branches.decide import Step
    from handlers.tracking_branches.records import TrackingState, TrackingStep

NO_MEMBERS: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class BranchOutcome:
    """The branch after a step: its head, None if it does not exist, and why the bot cannot move it, empty if it can."""

    head: str | None
    trouble: str


@dataclass(frozen=True, slots=True)
class StoredState:
    """What is stored about a tracking branch before a step ends.

    `last_step` is a `TrackingStep`, `record` a `TrackingState`, `moves` a `TrackingMoves`, or empty if none is stored.
    `has_issue`: an issue says that the bot cannot move the branch.
    """

    last_step: Mapping[str, Any]
    record: Mapping[str, Any]
    has_issue: bool
    moves: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    async def load(cls, context: Context, name: str, step: Step) -> StoredState:
        """Read the state of the branch that a timer of this name moves."""
        number, records = context.repository.id, context.records
        issue = ISSUE.of(number, _issue_key(name, step))
        last_step, record, moves = (kind.of(name, number) for kind in (TRACKING_STEP, TRACKING, TRACKING_MOVES))
        stored: Mapping[str, Any] = await records.get_some((issue, last_step, record, moves))
        last, state, earlier_moves = (stored.get(key.name, {}) for key in (last_step, record, moves))
        return cls(last, state, issue.name in stored, earlier_moves)


def move_effects(step: Step) -> tuple[MoveBranch, ...]:
    """Return the effect that moves the branch, if the step moves it."""
    return (MoveBranch(step.branch, step.chosen),) if step.chosen else ()


async def outcome_of_move(context: Context, step: Step, outcomes: EffectOutcomes) -> BranchOutcome | None:
    """Return the state of the branch after the move; ask GitHub if the move failed.

    Without a move, the branch is where the scan found it. None: GitHub was unavailable. The timer runs again, and
    people need not do anything.
    """
    move = outcomes.of(MoveBranch)
    if move is None:
        return BranchOutcome(step.before or None, "")
    if not move.state.is_failure:
        return BranchOutcome(move.returned(str, simulated=step.chosen), "")
    if move.state is not EffectState.STOPPED:
        return None
    return BranchOutcome(await branch_head(context.github, context.repository.full_name, step.branch), move.text)


@dataclass(frozen=True, slots=True)
class EndedStep:
    """What follows from a step of a branch, for each feature to add its own.

    `state` is the new state of the branch, None while GitHub is unavailable; `store_effects` store it and the step.
    `issue_effects` open or close the issue for people. `last_step` is the last step in which the bot moved the branch.
    """

    last_step: Mapping[str, Any]
    state: TrackingState | None
    store_effects: list[Effect]
    issue_effects: list[Effect]
    reason: str


def ended_step(
    name: str,
    repository_id: int,
    step: Step,
    stored: StoredState,
    outcome: BranchOutcome | None,
    issue_body: str,
    *,
    step_members: Mapping[str, Any] = NO_MEMBERS,
    record_members: Mapping[str, Any] = NO_MEMBERS,
) -> EndedStep:
    """Return what follows from a step of the timer `name`; `outcome` is None if GitHub was unavailable.

    `issue_body` is the issue's text, with places for names. The members are those of the feature alone.
    """
    last_step = _step_to_store(stored.last_step, step, step_members)
    store_effects = _store_step(name, repository_id, stored.last_step, last_step)
    if outcome is None:
        return EndedStep(last_step, None, store_effects, [], MOVE_FAILED.format(branch=step.branch))
    state = _state_to_store(stored.record, step, outcome, last_step, record_members)
    store_effects.append(StoreRecord.of(TRACKING.of(name, repository_id), state))
    issue_effects = _issue_effects(name, step, outcome, issue_body, has_issue=stored.has_issue)
    return EndedStep(last_step, state, store_effects, issue_effects, _reason(step, outcome))


def _step_to_store(last_step: Mapping[str, Any], step: Step, members: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the step with these `members` for the record; the last step again if this one does not move the branch.

    It is stored even if the move fails: the branch may have moved anyway, and the next scan, which finds nothing new,
    must know that the bot moved it.
    """
    last_at, last_sha = last_step.get("at", ""), last_step.get("sha", "")
    if step.chosen and step.at >= last_at and (step.at, step.chosen) != (last_at, last_sha):
        return {"sha": step.chosen, "before": step.before, "commits": step.commits, "at": step.at, **members}
    return last_step


def _state_to_store(
    record: Mapping[str, Any],
    step: Step,
    outcome: BranchOutcome,
    last_step: Mapping[str, Any],
    members: Mapping[str, Any],
) -> TrackingState:
    """Return the new record of the branch with these `members`, for the API and the next scan."""
    moved = {member: record.get(member) for member in ("sha", "previous_sha", "moved_at", "commits")}
    if outcome.head != moved["sha"] or record.get("branch") != step.branch:
        # If people move the branch, the bot knows neither the time nor the number of commits.
        moved_by_bot = bool(last_step) and outcome.head == last_step["sha"]
        previous_sha = last_step["before"] if moved_by_bot else step.before
        moved = {
            "sha": outcome.head,
            "previous_sha": previous_sha if previous_sha != outcome.head and previous_sha else None,
            "moved_at": last_step["at"] if moved_by_bot else None,
            "commits": last_step["commits"] if moved_by_bot else None,
        }
    scanned = {"scanned_at": step.at, "why": step.why, "trouble": outcome.trouble}
    why_not_newer = [dict(verdict) for verdict in step.why_not_newer]
    # mypy cannot see which keys `**` brings.
    return cast("TrackingState", {"branch": step.branch, **moved, **scanned, "why_not_newer": why_not_newer, **members})


def _store_step(name: str, repository_id: int, stored: Mapping[str, Any], new: Mapping[str, Any]) -> list[Effect]:
    """Return the effect that stores a step, if it differs from the stored one."""
    if new == stored:
        return []
    return [StoreRecord.of(TRACKING_STEP.of(name, repository_id), cast("TrackingStep", dict(new)))]


def _issue_effects(name: str, step: Step, outcome: BranchOutcome, body: str, *, has_issue: bool) -> list[Effect]:
    """Return the effect that opens an issue if the bot cannot move the branch, or closes it if the bot can again."""
    key, values = _issue_key(name, step), {"branch": step.branch, "source": step.source, "trouble": outcome.trouble}
    if outcome.trouble:
        return [EnsureIssue(key, ISSUE_TITLE.format(**values), body.format(**values))]
    return [EnsureIssue(key)] if step.fine and has_issue else []


def _reason(step: Step, outcome: BranchOutcome) -> str:
    """Say where the branch is, or that it cannot be moved."""
    if outcome.trouble:
        return CANNOT_MOVE.format(branch=step.branch)
    return (BRANCH_AT if outcome.head else NO_BRANCH).format(branch=step.branch, sha=(outcome.head or "")[:7])


def _issue_key(name: str, step: Step) -> str:
    return f"{name}:{step.branch}"
