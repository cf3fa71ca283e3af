"""What happens to a merge that waits, and the label `merge: label:` on what could be merged as it is.

Events are hints and cost nothing at GitHub, unless somebody waits for the commit that they name
(`handlers.merge.pending`). Only what can be over by itself is waited for: checks and approvals. Whatever else comes in
the way ends the waiting with a word, as it would have been refused in the first place, and a push does: it is another
commit, which nobody asked to merge.

Check suites are not listened to: a suite ends when the last of its runs does, and each of those is told of.

The label changes with what is told of the pull request itself and of the checks of a head that somebody has approved.
That the base moved and brought conflicts is told by no event of the pull request: it is seen at the next look.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from bot.core.errors import TryAgain
from bot.core.events import person_or_ghost
from bot.core.payload import Payload
from bot.effects.comments import Reply
from bot.effects.labels import EnsureLabel
from bot.github.markdown import code
from bot.github.ours import Ours
from bot.github.pull_heads import head_of
from bot.github.refs import is_update_of
from bot.github.signals import GREEN_CONCLUSIONS
from bot.plan.handler import NOTHING, ConcludeStage, Context, Plan, Router
from bot.timers.timers import TIMER_EVENT
from handlers.merge import texts
from handlers.merge.commands import KEY, update_command
from handlers.merge.conclusion import decide_after_wait, end_pending_merge
from handlers.merge.effects import COMPUTING_SECONDS, UNDECIDED, MergePull
from handlers.merge.pending import REFRESH_EVENT, PendingMerge, pending_merge, waiting, watching
from handlers.merge.pending_effects import RequestRefresh, StorePendingMerge
from handlers.merge.readiness import BlockerKind, listed, merge_blockers, undecided
from handlers.merge.snapshot import merge_state_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.config import RepositoryConfig
    from bot.config.merge import Merge
    from bot.core.events import Delivery
    from bot.plan.effect import Effect
    from bot.plan.outcome import Outcomes
    from handlers.merge.readiness import MergeBlocker, MergeState

NAME = "merge-when-green"
TIMER = "merges"

MERGED_BY_QUEUE = frozenset({"MERGE", "ALREADY_MERGED"})
"""Reasons for which nobody has to hear of it: that it is closed is told by another event."""

NOBODY_WAITS = "nobody waits for that commit"
A_REFRESH, SWEPT = "a look at {numbers}", "{count} merge(s) wait"
STILL_WAITING = "still waited for: {count} thing(s)"
UPDATED = "the base was merged into what is waited for"
ENDED = "the merge of #{number} was tried"
READY, NOT_READY = "it is ready to be merged", "it is not ready to be merged"

router = Router()


class PendingMergeVerdict(StrEnum):
    """What becomes of a merge that waits."""

    WAIT = "wait"
    MERGE = "merge"
    END = "end"
    """With a word."""
    FORGET = "forget"
    """Without one: somebody merged it, or closed it."""


@dataclass(frozen=True, slots=True)
class PendingMergeDecision:
    """A verdict, and for an end the words for people."""

    verdict: PendingMergeVerdict
    why: str = ""


def decide_pending_merge(
    pending: PendingMerge, merge_state: MergeState, found: Sequence[MergeBlocker]
) -> PendingMergeDecision:
    """Say what becomes of a merge that waits, by how the pull request stands and what is in the way."""
    pull = merge_state.pull
    if not pull.is_open:
        return PendingMergeDecision(PendingMergeVerdict.FORGET)
    if pull.head_sha != pending.sha:
        return PendingMergeDecision(PendingMergeVerdict.END, texts.PUSHED.format(new=code(pull.head_sha[:7])))
    if pull.base_ref != pending.base:
        return PendingMergeDecision(
            PendingMergeVerdict.END, texts.RETARGETED.format(new=code(pull.base_ref), old=code(pending.base))
        )
    if not found:
        return PendingMergeDecision(PendingMergeVerdict.MERGE)
    if all(reason.can_resolve for reason in found):
        return PendingMergeDecision(PendingMergeVerdict.WAIT)
    return PendingMergeDecision(PendingMergeVerdict.END, texts.NEEDS_WORK.format(why=listed(found)))


# Hints: statuses and check runs, which name a commit and no pull request


def is_trigger(delivery: Delivery, config: RepositoryConfig) -> bool:
    """Tell whether something may have become ready, or, where a label says that it is, may be so no more."""
    payload = delivery.payload
    if config.merge is None:
        return False
    if delivery.event == "status":
        green = payload.string("state") == "success"
    else:
        green = payload.text("check_run", "conclusion") in GREEN_CONCLUSIONS
    return green or config.merge.label is not None


@router.on("status", name=f"{NAME}-hints", feature=KEY, accepts=is_trigger)
@router.on("check_run", "created", "completed", name=f"{NAME}-hints", feature=KEY, accepts=is_trigger)
async def take_trigger(context: Context) -> Plan:
    """Ask for a look at the pull requests for which somebody waits for this commit; GitHub is asked nothing."""
    payload = context.delivery.payload
    sha = payload.string("sha") if context.delivery.event == "status" else payload.string("check_run", "head_sha")
    watched = await watching(context.records, context.repository.id, sha)
    wanted = [number for number in watched if await _is_wanted(context, number, sha)]
    if not wanted:
        return Plan(why=NOBODY_WAITS)
    reported_at = context.delivery.received_at
    return Plan(
        tuple(RequestRefresh(number, reported_at=reported_at) for number in wanted),
        why=A_REFRESH.format(numbers=wanted),
    )


async def _is_wanted(context: Context, number: int, sha: str) -> bool:
    pending = await _pending_of(context, number)
    if pending is not None and pending.sha == sha and not pending.queued:
        return True
    head = await head_of(context.records, context.repository.id, number)
    # Where no payload has told of the head, the look that had this commit watched has seen that it is.
    is_head = head is None or (head.is_open and head.sha == sha)
    return is_head and _config(context).label is not None


@router.on(TIMER_EVENT.name, TIMER, name=TIMER, feature=KEY)
async def sweep(context: Context) -> Plan:
    """Ask for a look at every pull request for which a merge waits, in case that an event was lost, or came too early.

    GitHub's API may lag behind the webhook that tells of a change.
    """
    numbers = await waiting(context.records, context.repository.id)
    return Plan(tuple(RequestRefresh(number) for number in numbers), why=SWEPT.format(count=len(numbers)))


# What is told of the pull request itself, in order with everything else about it


def may_matter(delivery: Delivery, config: RepositoryConfig) -> bool:
    """Tell from the payload whether what happened to a pull request can have to do with its being merged."""
    payload, keys = delivery.payload, config.merge
    if keys is None:
        return False
    match delivery.event, delivery.action:
        case "pull_request", "labeled" | "unlabeled":
            ours = {name.casefold() for name in (*keys.hold_labels, keys.label or "")}
            return payload.text("label", "name").casefold() in ours
        case "pull_request", "edited":
            return payload.has("changes", "base")
        case "pull_request_review", "submitted":
            return payload.text("review", "state") != "commented"
    return True


async def merge_conclusion(context: Context, number: int, outcomes: Outcomes) -> Plan:
    """Decide what follows from how a merge that had waited ended."""
    merged = outcomes.of(MergePull)
    return Plan(decide_after_wait(merged) if merged is not None else (), why=ENDED.format(number=number))


CONCLUDE = ConcludeStage(int, merge_conclusion)


@router.on(
    "pull_request",
    *("synchronize", "closed", "reopened", "edited", "labeled", "unlabeled", "ready_for_review", "converted_to_draft"),
    "dequeued",
    name=NAME,
    feature=KEY,
    accepts=may_matter,
    conclude=CONCLUDE,
)
@router.on(
    "pull_request_review", "submitted", "dismissed", name=NAME, feature=KEY, accepts=may_matter, conclude=CONCLUDE
)
@router.on(REFRESH_EVENT.name, name=NAME, feature=KEY, accepts=may_matter, conclude=CONCLUDE)
async def follow(context: Context) -> Plan:
    """Say what becomes of the merge that waits and of the label; GitHub is asked only where that is not known so."""
    payload, action, label = context.delivery.payload, context.delivery.action, _config(context).label
    if _is_ours(context):
        return NOTHING
    number = payload.integer("pull_request", "number")
    pending = await _pending_of(context, number)
    if pending is None and label is None:
        return NOTHING
    labelled = label is not None and label.casefold() in _labels(payload)
    if action == "closed":
        forget = (StorePendingMerge(number, said_at=pending.asked_at),) if pending else ()
        return Plan((*forget, *_label(context, number, on=False, labelled=labelled)), why="it is closed")
    if action == "dequeued":
        return _left_queue(payload, number, pending)
    if action == "synchronize":
        return await _pushed(context, number, pending, labelled=labelled)
    if pending is None and not labelled and _cannot_be_ready(payload):
        return Plan(why=NOT_READY)
    return await _refresh(context, number, pending)


async def _pushed(context: Context, number: int, pending: PendingMerge | None, *, labelled: bool) -> Plan:
    """End the waiting; the label goes without a look, for nobody has approved the new head yet."""
    effects = _label(context, number, on=False, labelled=labelled)
    head = await head_of(context.records, context.repository.id, number)
    if pending is None or head is None or head.sha == pending.sha:
        # Nobody waits for another head; or this tells late of a push before the one that is waited for.
        return Plan(effects, why=NOBODY_WAITS)
    if await _is_our_update(context, pending, head.sha):
        # It holds what was asked to be merged and the base, and nothing that anybody has written since.
        carried = replace(pending, sha=head.sha, refused=False)
        return Plan((*effects, StorePendingMerge(number, carried), RequestRefresh(number, watch=head.sha)), why=UPDATED)
    return Plan(
        (*effects, *end_pending_merge(number, pending, texts.PUSHED.format(new=code(head.sha[:7])))),
        why="the head moved",
    )


async def _is_our_update(context: Context, pending: PendingMerge, new: str) -> bool:
    """Say whether the push that this tells of is `update`, made by us on top of the commit that is waited for."""
    payload = context.delivery.payload
    if person_or_ghost(payload, "sender").id != context.me.user_id or payload.text("before") != pending.sha:
        return False
    return payload.text("after") == new and await is_update_of(
        context.github, context.repository.full_name, new, pending.sha
    )


def _left_queue(payload: Payload, number: int, pending: PendingMerge | None) -> Plan:
    """Say why what we had put into the merge queue is there no more; of what others put there GitHub tells them."""
    reason = payload.text("reason")
    if pending is None or not pending.queued or reason in MERGED_BY_QUEUE:
        return NOTHING
    by = code(person_or_ghost(payload, "sender").login)
    why = texts.WHY_IT_LEFT.get(reason, texts.REASON_UNKNOWN).format(by=by)
    reply = texts.LEFT_QUEUE.format(base=code(pending.base), why=why, reason=code(reason or "UNKNOWN_REMOVAL_REASON"))
    return Plan(end_pending_merge(number, pending, reply), why="it left the merge queue")


async def _refresh(context: Context, number: int, pending: PendingMerge | None) -> Plan:
    """Look at everything, once for label and merge. Raises `TryAgain` while GitHub finds out about conflicts."""
    config = _config(context)
    ours = Ours.of(context.me, context.config)
    merge_state = await merge_state_of(context.github, context.repository.full_name, number, ours, config.required)
    found = merge_blockers(merge_state, config, update=update_command(context))
    if undecided(merge_state, found):
        raise TryAgain(UNDECIDED, retry_in=COMPUTING_SECONDS)
    effects: list[Effect] = []
    if config.label is not None:
        labelled = config.label.casefold() in (name.casefold() for name in merge_state.labels)
        effects += _label(context, number, on=not found, labelled=labelled)
        effects += await _watch(context, merge_state, found)
    if pending is None or pending.queued:
        return Plan(tuple(effects), why=NOT_READY if found else READY)
    decision = decide_pending_merge(pending, merge_state, found)
    match decision.verdict:
        case PendingMergeVerdict.MERGE:
            return Plan((*effects, MergePull(number, pending, waited=True)), why=READY, conclusion_basis=number)
        case PendingMergeVerdict.END:
            return Plan((*effects, *end_pending_merge(number, pending, decision.why)), why=NOT_READY)
        case PendingMergeVerdict.FORGET:
            return Plan((*effects, StorePendingMerge(number, said_at=pending.asked_at)), why="it is closed")
    if not pending.refused and (behind := [reason for reason in found if reason.kind is BlockerKind.BEHIND]):
        reply = Reply(
            number, texts.FELL_BEHIND.format(sha=code(pending.sha[:7]), why=listed(behind)), since=pending.asked_at
        )
        effects += [reply, StorePendingMerge(number, replace(pending, refused=True))]
    return Plan(tuple(effects), why=STILL_WAITING.format(count=len(found)))


def _label(context: Context, number: int, *, on: bool, labelled: bool) -> tuple[EnsureLabel, ...]:
    label = _config(context).label
    return (EnsureLabel(number, label, on),) if label is not None and on != labelled else ()


async def _watch(context: Context, merge_state: MergeState, found: Sequence[MergeBlocker]) -> list[Effect]:
    """Have the checks of a head be watched once nothing but them is in the way of the label, or may come in its way."""
    sha, number = merge_state.pull.head_sha, merge_state.pull.number
    if any(reason.kind is not BlockerKind.CHECK for reason in found):
        return []
    watched = await watching(context.records, context.repository.id, sha)
    return [] if number in watched else [RequestRefresh(number, watch=sha)]


def _cannot_be_ready(payload: Payload) -> bool:
    return payload.flag("pull_request", "draft")


def _labels(payload: Payload) -> set[str]:
    return {label.text("name").casefold() for label in payload.items("pull_request", "labels")}


def _is_ours(context: Context) -> bool:
    """Say whether this tells of a label that we have put on or taken off ourselves."""
    labels = context.delivery.action in ("labeled", "unlabeled")
    return labels and person_or_ghost(context.delivery.payload, "sender").id == context.me.user_id


def _config(context: Context) -> Merge:
    config = context.config.merge
    assert config is not None  # the handlers are for repositories that have it
    return config


async def _pending_of(context: Context, number: int) -> PendingMerge | None:
    return await pending_merge(context.records, context.repository.id, number)
