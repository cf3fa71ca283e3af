"""Handle pending merges, and the label `merge: label:` on pull requests that could be merged now.

Events are triggers and send no request to GitHub, unless a merge waits for the commit that they name
(`handlers.merge.pending`). A merge waits only for what can resolve without a change: checks and approvals. Any other
blocker ends the pending merge with a comment, as it would have been refused in the first place. So does a push: nobody
asked to merge the new commit.

Check suite events are ignored: a suite ends with its last check run, and each check run has an event of its own. A
workflow run ends after its last check run, and until then it is pending.

The label follows events of the pull request itself and of the checks of an approved head. No event of the pull request
reports that its base moved and brought conflicts: the next refresh sees that.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum
from typing import TYPE_CHECKING

from bot.core.errors import TryAgain
from bot.core.events import Payload, PullRequest, person_or_ghost
from bot.effects.comments import Reply
from bot.effects.labels import EnsureLabel
from bot.github.commits.ours import Ours
from bot.github.commits.refs import is_update_of
from bot.github.commits.signals import GREEN_CONCLUSIONS
from bot.github.pull_heads import head_of
from bot.github.text.markdown import code
from bot.plan.handler import NOTHING, ConcludeStage, Context, Plan, Router
from bot.timers.timers import TIMER_EVENT
from handlers.merge import texts
from handlers.merge.commands import KEY, update_command
from handlers.merge.conclusion import decide_after_wait, end_pending_merge
from handlers.merge.config import MERGE
from handlers.merge.effects import COMPUTING_SECONDS, MergePull
from handlers.merge.pending import REFRESH_EVENT, pending_merge, waiting_pulls, watching_pulls
from handlers.merge.pending_effects import RequestRefresh, StorePendingMerge
from handlers.merge.readiness import BlockerKind, is_undecided, listed_blockers, merge_blockers
from handlers.merge.records import PendingMerge
from handlers.merge.snapshot import merge_state_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.config import RepositoryConfig
    from bot.core.events import Delivery
    from bot.plan.effect import Effect
    from bot.plan.outcome import EffectOutcomes
    from handlers.merge.config import Merge
    from handlers.merge.readiness import MergeBlocker, MergeState

NAME = "merge-when-green"
TIMER = "merges"
MOST_NAMED = 3
"""The most reasons that the audit log names."""

# https://docs.github.com/webhooks/webhook-events-and-payloads?actionType=dequeued#pull_request
MERGED_BY_QUEUE = frozenset({"MERGE", "ALREADY_MERGED"})
"""Reasons that need no comment: another event reports that the pull request is closed."""

router = Router()


class PendingMergeVerdict(StrEnum):
    """What to do about a pending merge."""

    WAIT = "wait"
    MERGE = "merge"
    END = "end"
    """End it with a comment."""
    FORGET = "forget"
    """End it without a comment: somebody merged or closed the pull request."""


@dataclass(frozen=True, slots=True)
class PendingMergeDecision:
    """A verdict; `reason` is the text for people if the merge ends."""

    verdict: PendingMergeVerdict
    reason: str = ""


def decide_pending_merge(
    pending: PendingMerge, merge_state: MergeState, blockers: Sequence[MergeBlocker]
) -> PendingMergeDecision:
    """Decide what to do about a pending merge, by the pull request's merge state and its blockers."""
    pull = merge_state.pull
    if not pull.is_open:
        return PendingMergeDecision(PendingMergeVerdict.FORGET)
    if pull.head_sha != pending.sha:
        return PendingMergeDecision(PendingMergeVerdict.END, texts.PUSHED.format(new=code(pull.head_sha[:7])))
    if pull.base_ref != pending.base:
        return PendingMergeDecision(
            PendingMergeVerdict.END, texts.RETARGETED.format(new=code(pull.base_ref), old=code(pending.base))
        )
    if not blockers:
        return PendingMergeDecision(PendingMergeVerdict.MERGE)
    if all(blocker.can_resolve for blocker in blockers):
        return PendingMergeDecision(PendingMergeVerdict.WAIT)
    return PendingMergeDecision(PendingMergeVerdict.END, texts.NEEDS_WORK.format(why=listed_blockers(blockers)))


# Triggers: statuses, check runs and workflow runs, which name a commit and no pull request


def is_trigger(delivery: Delivery, config: RepositoryConfig) -> bool:
    """Say whether a pull request may have become ready to merge or, with a label, may no longer be ready."""
    payload, merge = delivery.payload, config.of(MERGE)
    if merge is None:
        return False
    if delivery.event == "workflow_run":
        # Whatever its conclusion: the jobs of an earlier attempt that were not run again count from now on.
        return True
    if delivery.event == "status":
        green = payload.string("state") == "success"
    else:
        green = payload.text("check_run", "conclusion") in GREEN_CONCLUSIONS
    return green or merge.label is not None


@router.on("status", name=f"{NAME}-triggers", feature=KEY, accepts=is_trigger)
@router.on("check_run", "created", "completed", name=f"{NAME}-triggers", feature=KEY, accepts=is_trigger)
@router.on("workflow_run", "completed", name=f"{NAME}-triggers", feature=KEY, accepts=is_trigger)
async def take_trigger(context: Context) -> Plan:
    """Request a refresh of the pull requests whose merge waits for this commit. Sends no request to GitHub."""
    payload = context.delivery.payload
    event = context.delivery.event
    sha = payload.string("sha") if event == "status" else payload.string(event, "head_sha")
    watched = await watching_pulls(context.records, context.repository.id, sha)
    numbers = [number for number in watched if await _needs_refresh(context, number, sha)]
    if not numbers:
        return Plan(why=texts.WHY_NO_PENDING_MERGE)
    reported_at = context.delivery.received_at
    return Plan(
        tuple(RequestRefresh(number, reported_at=reported_at) for number in numbers),
        why=texts.WHY_REFRESH.format(numbers=numbers),
    )


async def _needs_refresh(context: Context, number: int, sha: str) -> bool:
    pending = await _pending_of(context, number)
    if pending is not None and pending.sha == sha and not pending.queued:
        return True
    head = await head_of(context.records, context.repository.id, number)
    # If no payload has named the head yet, trust the refresh that stored the watch: it saw this commit as the head.
    is_head = head is None or (head.is_open and head.sha == sha)
    return is_head and _config(context).label is not None


@router.on(TIMER_EVENT.name, TIMER, name=TIMER, feature=KEY)
async def sweep(context: Context) -> Plan:
    """Request a refresh of every pull request with a pending merge, in case an event was lost or came too early.

    GitHub's API may lag behind the webhook that reports a change.
    """
    numbers = await waiting_pulls(context.records, context.repository.id)
    return Plan(tuple(RequestRefresh(number) for number in numbers), why=texts.WHY_SWEPT.format(count=len(numbers)))


# Events of the pull request itself, in order with all others of it


def may_matter(delivery: Delivery, config: RepositoryConfig) -> bool:
    """Say whether a pull request's event can matter to its merge, by the payload alone."""
    payload, keys = delivery.payload, config.of(MERGE)
    if keys is None:
        return False
    match delivery.event, delivery.action:
        case "pull_request", "labeled" | "unlabeled":
            relevant_labels = {name.casefold() for name in (*keys.hold_labels, keys.label or "")}
            return payload.text("label", "name").casefold() in relevant_labels
        case "pull_request", "edited":
            # New titles and texts are `edited` as well; only a new base has `changes.base`.
            # https://docs.github.com/webhooks/webhook-events-and-payloads?actionType=edited#pull_request
            return payload.has("changes", "base")
        case "pull_request_review", "submitted":
            # Webhooks write a review's state in lower case; the REST API, which `snapshot` reads, in upper case.
            # https://docs.github.com/webhooks/webhook-events-and-payloads?actionType=submitted#pull_request_review
            return payload.text("review", "state") != "commented"
    return True


async def report_failure(context: Context, message: str) -> Plan:
    """End a pending merge that could not be checked or concluded, with a comment; forget it if GitHub has merged."""
    payload, repository = context.delivery.payload, context.repository.full_name
    number = payload.integer("pull_request", "number")
    pending = await _pending_of(context, number)
    if pending is None or pending.queued:
        return NOTHING
    url_vars = {"repo": repository, "number": str(number)}
    answer = await context.github.getitem("/repos/{+repo}/pulls/{number}", url_vars=url_vars)
    if not PullRequest.of(Payload(answer, "pull request")).is_open:
        return Plan((StorePendingMerge(number, said_at=pending.asked_at),), why=texts.WHY_CLOSED)
    return Plan(end_pending_merge(number, pending, message), why=texts.WHY_NOT_CHECKED)


async def merge_conclusion(context: Context, number: int, outcomes: EffectOutcomes) -> Plan:
    """Decide what follows from the outcome of a merge that had waited."""
    merged = outcomes.of(MergePull)
    return Plan(decide_after_wait(merged) if merged is not None else (), why=texts.WHY_TRIED.format(number=number))


CONCLUDE = ConcludeStage(int, merge_conclusion)


@router.on(
    "pull_request",
    *("synchronize", "closed", "reopened", "edited", "labeled", "unlabeled", "ready_for_review", "converted_to_draft"),
    "dequeued",
    name=NAME,
    feature=KEY,
    on_failure=report_failure,
    accepts=may_matter,
    conclude=CONCLUDE,
)
@router.on(
    *("pull_request_review", "submitted", "dismissed"),
    name=NAME,
    feature=KEY,
    on_failure=report_failure,
    accepts=may_matter,
    conclude=CONCLUDE,
)
@router.on(REFRESH_EVENT.name, name=NAME, feature=KEY, on_failure=report_failure, accepts=may_matter, conclude=CONCLUDE)
async def follow_pull_request(context: Context) -> Plan:
    """Decide about the pending merge and the label; ask GitHub only if the payload and our records are not enough."""
    payload, action, label = context.delivery.payload, context.delivery.action, _config(context).label
    if _is_own_label_event(context):
        return NOTHING
    number = payload.integer("pull_request", "number")
    pending = await _pending_of(context, number)
    if pending is None and label is None:
        return NOTHING
    labeled = label is not None and label.casefold() in _labels(payload)
    if action == "closed":
        forget = (StorePendingMerge(number, said_at=pending.asked_at),) if pending else ()
        return Plan((*forget, *_label(context, number, should_have=False, labeled=labeled)), why=texts.WHY_CLOSED)
    if action == "dequeued":
        return _handle_dequeue(payload, number, pending)
    if action == "synchronize":
        return await _handle_push(context, number, pending, labeled=labeled)
    # With a label or a pending merge, a draft has something to lose and needs the refresh.
    if pending is None and not labeled and _cannot_be_ready(payload):
        return Plan(why=texts.WHY_NOT_READY)
    return await _refresh_pull(context, number, pending)


async def _handle_push(context: Context, number: int, pending: PendingMerge | None, *, labeled: bool) -> Plan:
    """End the pending merge, and remove the label without a refresh: nobody has approved the new head yet."""
    effects = _label(context, number, should_have=False, labeled=labeled)
    head = await head_of(context.records, context.repository.id, number)
    if pending is None or head is None or head.sha == pending.sha:
        # No merge waits, or this is a late event of a push before the commit that is to be merged.
        return Plan(effects, why=texts.WHY_NO_PENDING_MERGE)
    if await _is_our_update(context, pending, head.sha):
        # It contains the commit that is to be merged and the base, and no other changes.
        carried = replace(pending, sha=head.sha, refused=False)
        return Plan(
            (*effects, StorePendingMerge(number, carried), RequestRefresh(number, watch=head.sha)),
            why=texts.WHY_UPDATED,
        )
    return Plan(
        (*effects, *end_pending_merge(number, pending, texts.PUSHED.format(new=code(head.sha[:7])))),
        why=texts.WHY_HEAD_MOVED,
    )


async def _is_our_update(context: Context, pending: PendingMerge, head_sha: str) -> bool:
    """Say whether this push is our own `update`, on top of the commit that is to be merged."""
    payload = context.delivery.payload
    if person_or_ghost(payload, "sender").id != context.me.user_id or payload.text("before") != pending.sha:
        return False
    return payload.text("after") == head_sha and await is_update_of(
        context.github, context.repository.full_name, head_sha, pending.sha
    )


def _handle_dequeue(payload: Payload, number: int, pending: PendingMerge | None) -> Plan:
    """Say why a pull request that we added to the merge queue left it; GitHub itself notifies others who add one."""
    reason = payload.text("reason")
    if pending is None or not pending.queued or reason in MERGED_BY_QUEUE:
        return NOTHING
    person = code(person_or_ghost(payload, "sender").login)
    cause = texts.WHY_IT_LEFT.get(reason, texts.REASON_UNKNOWN).format(by=person)
    reply = texts.LEFT_QUEUE.format(base=code(pending.base), why=cause, reason=code(reason or "UNKNOWN_REMOVAL_REASON"))
    return Plan(end_pending_merge(number, pending, reply), why=texts.WHY_LEFT_QUEUE)


async def _refresh_pull(context: Context, number: int, pending: PendingMerge | None) -> Plan:
    """Read the merge state once, for label and merge. Raises `TryAgain` while GitHub computes conflicts."""
    config = _config(context)
    own_contexts = Ours.of(context.me, context.config)
    merge_state = await merge_state_of(
        context.github, context.repository.full_name, number, own_contexts, config.required
    )
    blockers = merge_blockers(merge_state, config, update=update_command(context))
    if is_undecided(merge_state, blockers):
        raise TryAgain(texts.WHY_UNDECIDED, retry_in=COMPUTING_SECONDS)
    effects: list[Effect] = []
    if config.label is not None:
        labeled = config.label.casefold() in (name.casefold() for name in merge_state.labels)
        effects += _label(context, number, should_have=not blockers, labeled=labeled)
        effects += await _watch(context, merge_state, blockers)
    if pending is None or pending.queued:
        return Plan(tuple(effects), why=texts.WHY_NOT_READY if blockers else texts.WHY_READY)
    decision = decide_pending_merge(pending, merge_state, blockers)
    match decision.verdict:
        case PendingMergeVerdict.MERGE:
            return Plan(
                (*effects, MergePull(number, pending, waited=True)), why=texts.WHY_READY, conclusion_basis=number
            )
        case PendingMergeVerdict.END:
            return Plan((*effects, *end_pending_merge(number, pending, decision.reason)), why=texts.WHY_NOT_READY)
        case PendingMergeVerdict.FORGET:
            return Plan((*effects, StorePendingMerge(number, said_at=pending.asked_at)), why=texts.WHY_CLOSED)
    if not pending.refused and (behind := [blocker for blocker in blockers if blocker.kind is BlockerKind.BEHIND]):
        reply = Reply(
            number,
            texts.FELL_BEHIND.format(sha=code(pending.sha[:7]), why=listed_blockers(behind)),
            since=pending.asked_at,
        )
        effects += [reply, StorePendingMerge(number, replace(pending, refused=True))]
    return Plan(tuple(effects), why=_in_one_line(blockers))


def _in_one_line(blockers: Sequence[MergeBlocker]) -> str:
    unnamed = [texts.MORE.format(count=len(blockers) - MOST_NAMED)] if len(blockers) > MOST_NAMED else []
    return " ".join([*(blocker.text for blocker in blockers[:MOST_NAMED]), *unnamed])


def _label(context: Context, number: int, *, should_have: bool, labeled: bool) -> tuple[EnsureLabel, ...]:
    label = _config(context).label
    return (EnsureLabel(number, label, should_have),) if label is not None and should_have != labeled else ()


async def _watch(context: Context, merge_state: MergeState, blockers: Sequence[MergeBlocker]) -> list[Effect]:
    """Watch the checks of a head once only checks block the label, or can block it later."""
    sha, number = merge_state.pull.head_sha, merge_state.pull.number
    if any(blocker.kind is not BlockerKind.CHECK for blocker in blockers):
        return []
    watched = await watching_pulls(context.records, context.repository.id, sha)
    return [] if number in watched else [RequestRefresh(number, watch=sha)]


def _cannot_be_ready(payload: Payload) -> bool:
    return payload.flag("pull_request", "draft")


def _labels(payload: Payload) -> set[str]:
    return {label.text("name").casefold() for label in payload.items("pull_request", "labels")}


def _is_own_label_event(context: Context) -> bool:
    """Say whether this event is about a label that we added or removed ourselves."""
    # GitHub sends an App the events of its own changes as well.
    labels = context.delivery.action in ("labeled", "unlabeled")
    return labels and person_or_ghost(context.delivery.payload, "sender").id == context.me.user_id


def _config(context: Context) -> Merge:
    config = context.config.of(MERGE)
    assert config is not None  # the handlers are for repositories that have it
    return config


async def _pending_of(context: Context, number: int) -> PendingMerge | None:
    return await pending_merge(context.records, context.repository.id, number)
