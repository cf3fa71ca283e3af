"""The last word on a branch that follows another: what became of its move, and what people have to do, if anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from bot.effects.base import Applied, EffectContext
from bot.effects.issues import KeepIssue
from bot.effects.refs import CANNOT, MoveBranch
from bot.following.decide import Step
from bot.following.kept import record_key
from bot.github.refs import branch_head

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


async def how_it_ended(context: EffectContext, step: Step) -> Ended | None:
    """Look at the branch once its move was tried.

    None: GitHub was away. The timer comes back, and there is nothing that people could do.
    """
    failed = next((sibling.text for sibling in await context.siblings() if sibling.failed), "")
    if failed and not failed.startswith(CANNOT.format(branch=step.branch)):
        return None
    return Ended(await branch_head(context.github, context.repository.full_name, step.branch), failed)


async def keep(context: EffectContext, name: str, step: Step, ended: Ended, **more: Any) -> None:
    """Keep what is known of the branch that a timer of this name moves, and `more`: for the API and the next look."""
    key = record_key(name, context.repository.id)
    record = await context.records.get(key) or {}
    moved = {member: record.get(member) for member in ("sha", "previous_sha", "moved_at", "commits")}
    if ended.head != moved["sha"] or record.get("branch") != step.branch:
        ours = bool(step.chosen) and ended.head == step.chosen
        moved = {
            "sha": ended.head,
            "previous_sha": step.before if step.before != ended.head and step.before else None,
            "moved_at": step.at if ours else None,
            "commits": step.commits if ours else None,
        }
    looked = {"looked_at": step.at, "why": step.why, "trouble": ended.trouble}
    listed = [dict(one) for one in step.why_not_newer]
    await context.records.put(key, {"branch": step.branch, **moved, **looked, "why_not_newer": listed, **more})


async def tell_of_trouble(context: EffectContext, name: str, step: Step, ended: Ended, body: str) -> Applied:
    """Keep an issue open as long as the branch cannot be moved; `body` is its text, with places for names."""
    key, names = f"{name}:{step.branch}", {"branch": step.branch, "source": step.source, "trouble": ended.trouble}
    if ended.trouble:
        return Applied((await KeepIssue(key, TITLE.format(**names), body.format(**names)).apply(context)).text)
    if step.fine:
        await KeepIssue(key).apply(context)
    return Applied(KEPT.format(**names))
