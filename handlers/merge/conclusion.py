"""Decide what follows from the outcome of a merge. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from bot.effects.comments import Reply
from bot.github.text.markdown import code
from handlers.merge import texts
from handlers.merge.effects import MergeEnd, MergePull, MergeResult
from handlers.merge.pending_effects import EndPendingMerge, StorePendingMerge

if TYPE_CHECKING:
    from collections.abc import Sequence

    from bot.plan.effect import Effect
    from bot.plan.outcome import EffectOutcome
    from handlers.merge.records import PendingMerge

MERGED = MergeResult(MergeEnd.MERGED)


def end_pending_merge(number: int, pending: PendingMerge, reason: str) -> tuple[Effect, ...]:
    """Comment that a pending merge will not happen, and why; then remove it."""
    sha, person = code(pending.sha[:7]), code(pending.by.login)
    text = texts.PENDING_OFF.format(sha=sha, by=person, url=pending.url, why=reason)
    return Reply(number, text, since=pending.asked_at), EndPendingMerge(number, pending)


def decide_after_command(outcomes: Sequence[EffectOutcome]) -> tuple[Effect, ...]:
    """Decide what follows from a merge by command. A failure needs nothing: the answer to the command explains it."""
    return tuple(effect for outcome in outcomes if not outcome.state.is_failure for effect in _after_merge(outcome))


def decide_after_wait(outcome: EffectOutcome) -> tuple[Effect, ...]:
    """Decide what follows from a merge that was pending. A failure ends it with a comment."""
    if outcome.state.is_failure and isinstance(outcome.effect, MergePull):
        return end_pending_merge(outcome.effect.number, outcome.effect.pending, outcome.text)
    return _after_merge(outcome)


def _after_merge(outcome: EffectOutcome) -> tuple[Effect, ...]:
    merge = outcome.effect
    result = outcome.returned(MergeResult, simulated=MERGED) if isinstance(merge, MergePull) else None
    if not isinstance(merge, MergePull) or result is None:
        return ()
    number, pending = merge.number, merge.pending
    match result.end:
        # Stored also after a plain `merge`, which ends the `merge when green` of an earlier comment.
        case MergeEnd.MERGED:
            return (StorePendingMerge(number, said_at=pending.asked_at),)
        # We store it also after a plain `merge`: only then does `cancel` know that there is something to remove from
        # the queue.
        case MergeEnd.QUEUED:
            return (StorePendingMerge(number, replace(pending, queued=True)),)
        case MergeEnd.WAITS if not pending.refused:
            # Classic protection may require several approvals, and only administrators can read how many.
            text = texts.BLOCKED.format(sha=code(pending.sha[:7]), message=code(result.message))
            refused = StorePendingMerge(number, replace(pending, refused=True))
            return Reply(number, text, since=pending.asked_at), refused
    return ()
