"""The last word on a branch that follows another: what became of its move, and what people have to do, if anything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from bot.effects.issues import EnsureIssue
from bot.effects.refs import CANNOT, MoveBranch
from bot.github.refs import branch_head
from bot.plan.effect import Applied, EffectContext
from handlers.branches.decide import Step
from handlers.branches.record import TRACKING, TRACKING_STEP

TITLE = "The branch {branch} cannot be moved"
NOT_MOVED = "left as it was, for the move has failed"
KEPT = "remembered where {branch} is"


@dataclass(frozen=True, slots=True)
class Ended:
    """How a step ended: where the branch is now (None: nowhere), and why it cannot be moved, empty where it can."""

    head: str | None
    trouble: str


def moves(step: Step) -> tuple[MoveBranch, ...]:
    """Return the effect that takes a step, if it is one."""
    return (MoveBranch(step.branch, step.chosen),) if step.chosen else ()


async def aim_of(context: EffectContext, name: str, step: Step, **more: Any) -> Mapping[str, Any]:
    """Note what a step is to come to, and `more`; return that, or what the last one was to come to where this is none.

    It is noted before GitHub is asked: where that fails for good, the branch may have moved all the same, and the next
    look, which finds nothing new, has to know that it was we who moved it.
    """
    key = TRACKING_STEP.of(name, context.repository.id)
    aim = await context.records.get(key) or {}
    noted = (aim.get("at", ""), aim.get("sha", ""))
    if step.chosen and step.at >= noted[0] and (step.at, step.chosen) != noted:
        aim = {"sha": step.chosen, "before": step.before, "commits": step.commits, "at": step.at, **more}
        await context.records.put(key, aim)
    return aim


async def how_it_ended(context: EffectContext, step: Step) -> Ended | None:
    """Look at the branch once its move was tried.

    None: GitHub was away. The timer comes back, and there is nothing that people could do.
    """
    failed = next((sibling.text for sibling in await context.siblings() if sibling.failed), "")
    if failed and not failed.startswith(CANNOT.format(branch=step.branch)):
        return None
    return Ended(await branch_head(context.github, context.repository.full_name, step.branch), failed)


async def keep(
    context: EffectContext, name: str, step: Step, ended: Ended, aim: Mapping[str, Any], **more: Any
) -> None:
    """Keep what is known of the branch that a timer of this name moves, and `more`: for the API and the next look."""
    key = TRACKING.of(name, context.repository.id)
    record = await context.records.get(key) or {}
    moved = {member: record.get(member) for member in ("sha", "previous_sha", "moved_at", "commits")}
    if ended.head != moved["sha"] or record.get("branch") != step.branch:
        ours = bool(aim) and ended.head == aim["sha"]
        before = aim["before"] if ours else step.before
        moved = {
            "sha": ended.head,
            "previous_sha": before if before != ended.head and before else None,
            "moved_at": aim["at"] if ours else None,
            "commits": aim["commits"] if ours else None,
        }
    looked = {"looked_at": step.at, "why": step.why, "trouble": ended.trouble}
    listed = [dict(one) for one in step.why_not_newer]
    await context.records.put(key, {"branch": step.branch, **moved, **looked, "why_not_newer": listed, **more})


async def tell_of_trouble(context: EffectContext, name: str, step: Step, ended: Ended, body: str) -> Applied:
    """Keep an issue open as long as the branch cannot be moved; `body` is its text, with places for names."""
    key, names = f"{name}:{step.branch}", {"branch": step.branch, "source": step.source, "trouble": ended.trouble}
    if ended.trouble:
        return Applied((await EnsureIssue(key, TITLE.format(**names), body.format(**names)).apply(context)).text)
    if step.fine:
        await EnsureIssue(key).apply(context)
    return Applied(KEPT.format(**names))
