"""Decide what to write after the move of a tracking branch: its records, and the issue for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from bot.effects.issues import ISSUE, EnsureIssue
from bot.effects.refs import MoveBranch
from bot.effects.remember import StoreRecord
from bot.engine.processor import EffectState
from bot.github.commits.refs import branch_head
from handlers.branches.record import TRACKING, TRACKING_MOVES, TRACKING_STEP
from handlers.branches.texts import BRANCH_AT, CANNOT_MOVE, ISSUE_TITLE, NO_BRANCH

if TYPE_CHECKING:
    from bot.plan.effect import Effect
    from bot.plan.handler import Context
    from bot.plan.outcome import EffectOutcomes
    from handlers.branches.decide import Step
    from handlers.branches.record import TrackingState, TrackingStep


@dataclass(frozen=True, slots=True)
class Ended:
    """How a step ended: the head of the branch (None: it does not exist), and why the bot cannot move it, or empty."""

    head: str | None
    trouble: str


@dataclass(frozen=True, slots=True)
class StoredState:
    """What is stored about a tracking branch: the last step, the record, whether it has an issue, and its moves."""

    aim: Mapping[str, Any]
    record: Mapping[str, Any]
    has_issue: bool
    moves: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    async def load(cls, context: Context, name: str, step: Step) -> StoredState:
        """Read the state of the branch that a timer of this name moves."""
        number, records = context.repository.id, context.records
        issue = await records.get(ISSUE.of(number, _issue_of(name, step)))
        aim = await records.get(TRACKING_STEP.of(name, number))
        record = await records.get(TRACKING.of(name, number))
        moves = await records.get(TRACKING_MOVES.of(name, number))
        return cls(aim or {}, record or {}, issue is not None, moves or {})


def moves(step: Step) -> tuple[MoveBranch, ...]:
    """Return the effect that moves the branch, if the step moves it."""
    return (MoveBranch(step.branch, step.chosen),) if step.chosen else ()


async def how_it_ended(context: Context, step: Step, outcomes: EffectOutcomes) -> Ended | None:
    """Return the state of the branch after the move; ask GitHub if the outcome of the move does not say.

    None: GitHub was unavailable. The timer runs again, and people need not do anything.
    """
    move, trouble = outcomes.of(MoveBranch), ""
    if move is not None and move.state.is_failure:
        if move.state is not EffectState.STOPPED:
            return None
        trouble = move.text
    elif move is not None:
        return Ended(move.returned(str, simulated=step.chosen), "")
    return Ended(await branch_head(context.github, context.repository.full_name, step.branch), trouble)


def aim_after(aim: Mapping[str, Any], step: Step, **more: Any) -> Mapping[str, Any]:
    """Return the aim of a step, and `more`; or the earlier aim if the step does not move the branch.

    It is stored even if the move fails: the branch may have moved anyway, and the next scan, which finds nothing new,
    must know that the bot moved it.
    """
    stored = (aim.get("at", ""), aim.get("sha", ""))
    if step.chosen and step.at >= stored[0] and (step.at, step.chosen) != stored:
        return {"sha": step.chosen, "before": step.before, "commits": step.commits, "at": step.at, **more}
    return aim


def record_after(
    record: Mapping[str, Any], step: Step, ended: Ended, aim: Mapping[str, Any], **more: Any
) -> TrackingState:
    """Return the new record of the branch, with `more`: for the API and the next scan."""
    moved = {member: record.get(member) for member in ("sha", "previous_sha", "moved_at", "commits")}
    if ended.head != moved["sha"] or record.get("branch") != step.branch:
        # If people move the branch, the bot knows neither the time nor the number of commits.
        ours = bool(aim) and ended.head == aim["sha"]
        before = aim["before"] if ours else step.before
        moved = {
            "sha": ended.head,
            "previous_sha": before if before != ended.head and before else None,
            "moved_at": aim["at"] if ours else None,
            "commits": aim["commits"] if ours else None,
        }
    scanned = {"scanned_at": step.at, "why": step.why, "trouble": ended.trouble}
    listed = [dict(one) for one in step.why_not_newer]
    # mypy cannot see which keys `**` brings.
    return cast("TrackingState", {"branch": step.branch, **moved, **scanned, "why_not_newer": listed, **more})


def stored_aim(name: str, repository_id: int, before: Mapping[str, Any], aim: Mapping[str, Any]) -> list[Effect]:
    """Return the effect that stores the aim of a step, if it is new."""
    return (
        [StoreRecord.of(TRACKING_STEP.of(name, repository_id), cast("TrackingStep", dict(aim)))]
        if aim != before
        else []
    )


def issue_about(name: str, step: Step, ended: Ended, body: str, *, has_issue: bool) -> list[Effect]:
    """Return the effect that opens an issue while the branch cannot be moved, or closes it.

    `body` is the issue's text, with places for names.
    """
    key, names = _issue_of(name, step), {"branch": step.branch, "source": step.source, "trouble": ended.trouble}
    if ended.trouble:
        return [EnsureIssue(key, ISSUE_TITLE.format(**names), body.format(**names))]
    return [EnsureIssue(key)] if step.fine and has_issue else []


def why_concluded(step: Step, ended: Ended) -> str:
    """Say where the branch is, or that it cannot be moved."""
    if ended.trouble:
        return CANNOT_MOVE.format(branch=step.branch)
    return (BRANCH_AT if ended.head else NO_BRANCH).format(branch=step.branch, sha=(ended.head or "")[:7])


def _issue_of(name: str, step: Step) -> str:
    return f"{name}:{step.branch}"
