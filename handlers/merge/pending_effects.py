"""What becomes of a merge that somebody stored for and that has to wait: it is kept, looked at, ended with a word."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from bot.core.errors import TryAgain
from bot.engine.internal import announce
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, EffectContext
from handlers.merge.pending import (
    MERGE_REQUEST,
    MERGE_WATCH,
    REFRESH_EVENT,
    MergeRequest,
    PendingMerge,
    WatchedCommit,
    next_refresh,
    pending_merge,
    request_after,
    watching,
)

WAITS, NONE_LEFT = "the merge of {sha} waits", "no merge waits"
LATER, WRITTEN = "what was said later stands", "somebody else wrote it down at the same moment"
ASKED, ASKED_ALREADY = "#{number} is looked at", "#{number} is looked at soon in any case"
SETTLE_SECONDS = 0.5
"""How long a look waits for more of the same: one moment often ends a check run, its workflow and a status."""


@dataclass(frozen=True, slots=True)
class StorePendingMerge:
    """Keep what somebody stored for a pull request, in place of what was kept; None: nothing any more.

    `said_at` (ISO 8601) is when it was said that nothing is to be kept, or when that was which has ended; empty:
    whatever is kept ends.
    """

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    number: int
    pending: PendingMerge | None = None
    said_at: str = ""

    @property
    def target(self) -> str:
        """The pull request: of two words in one comment the later stands."""
        return f"merge-pending:{self.number}"

    async def apply(self, context: EffectContext) -> Applied:
        """Write it down, unless something was said later. Raises `TryAgain` where that changes at this very moment."""
        moment = self.pending.asked_at if self.pending else self.said_at
        if not await _store(context, self.number, self.pending, moment):
            return Applied(LATER, changed=False)
        return Applied(WAITS.format(sha=self.pending.sha[:7]) if self.pending else NONE_LEFT)


@dataclass(frozen=True, slots=True)
class RequestRefresh:
    """Have a pull request looked at, whether it can be merged; with a `watch`, now and whenever that commit changes.

    The look after the note of it sees what happened before it was written down, and was no hint yet. `reported_at`, in
    seconds since 1970, is when something told that it may have changed; None: look at once.
    """

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    number: int
    watch: str = ""
    reported_at: float | None = None

    @property
    def target(self) -> str:
        """The pull request."""
        return f"merge-look:{self.number}"

    async def apply(self, context: EffectContext) -> Applied:
        """Announce the next look that has not begun; whoever did so before has asked for the same."""
        if self.watch:
            numbers = await watching(context.records, context.repository.id, self.watch)
            if self.number not in numbers:
                watched = WatchedCommit((*numbers, self.number))
                await context.records.put(MERGE_WATCH.of(context.repository.id, self.watch), watched)
        refresh = await next_refresh(context.records, context.repository, self.number)
        not_before = self.reported_at + SETTLE_SECONDS if self.reported_at is not None else None
        new = await announce(context.announce, REFRESH_EVENT, context.repository, refresh, not_before=not_before)
        return Applied((ASKED if new else ASKED_ALREADY).format(number=self.number), changed=new)


@dataclass(frozen=True, slots=True)
class EndPendingMerge:
    """Forget a merge that was waited for, but none that was asked for since."""

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    number: int
    pending: PendingMerge

    @property
    def target(self) -> str:
        """The pull request."""
        return f"merge-end:{self.number}"

    async def apply(self, context: EffectContext) -> Applied:
        """Look which one is stored, then forget it."""
        stored = await pending_merge(context.records, context.repository.id, self.number)
        if stored is not None and not stored.is_same(self.pending):
            return Applied(WAITS.format(sha=stored.sha[:7]), changed=False)
        await _store(context, self.number, None, self.pending.asked_at)
        return Applied(NONE_LEFT)


async def _store(context: EffectContext, number: int, pending: PendingMerge | None, moment: str) -> bool:
    newest = True

    def change(known: MergeRequest | None) -> MergeRequest | None:
        nonlocal newest
        after = request_after(known, pending, moment)
        newest = after is not None
        return after

    if not await context.records.change(MERGE_REQUEST.of(context.repository.id, number), change):
        raise TryAgain(WRITTEN, retry_in=SETTLE_SECONDS)
    return newest
