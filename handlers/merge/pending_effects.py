"""Effects of a pending merge: store it, request a refresh of its pull request, end it."""

from __future__ import annotations

from dataclasses import dataclass

from bot.plan.effect import Applied, StoreContext, StoredEffect
from handlers.merge import texts
from handlers.merge.pending import REFRESH_EVENT, next_refresh, pending_merge, request_after
from handlers.merge.records import MERGE_REQUEST, MERGE_WATCH, MergeRequest, PendingMerge, WatchedCommit

SETTLE_SECONDS = 0.5
"""Seconds that a refresh waits for more triggers: a check run, its workflow and a status often end together."""


@dataclass(frozen=True, slots=True)
class StorePendingMerge(StoredEffect):
    """Store the pending merge of a pull request in place of the stored one; None ends it.

    `said_at` (ISO 8601) is when somebody cancelled the merge, or when the merge that has ended was asked for; if empty,
    any pending merge ends.
    """

    number: int
    pending: PendingMerge | None = None
    said_at: str = ""

    @property
    def effect_key(self) -> str:
        """The pull request: of two commands in one comment, the later one counts."""
        return f"merge-pending:{self.number}"

    async def store(self, context: StoreContext) -> Applied:
        """Store it, unless a later request is stored."""
        moment = self.pending.asked_at if self.pending else self.said_at
        if not await _change_request(context, self.number, self.pending, moment):
            return Applied(texts.PENDING_REPLACED, changed=False)
        return Applied(texts.IS_PENDING.format(sha=self.pending.sha[:7]) if self.pending else texts.NONE_PENDING)


@dataclass(frozen=True, slots=True)
class RequestRefresh(StoredEffect):
    """Request a refresh of a pull request; with a `watch`, now and whenever something happens to that commit.

    The refresh comes after the watch is stored, so that it sees what happened before and triggered nothing.
    `reported_at`, in seconds since 1970, is when an event reported a possible change; None: refresh at once.
    """

    number: int
    watch: str = ""
    reported_at: float | None = None

    @property
    def effect_key(self) -> str:
        """The pull request."""
        return f"merge-refresh:{self.number}"

    async def store(self, context: StoreContext) -> Applied:
        """Announce the next refresh that has not begun, unless another request has announced it already."""
        if self.watch:
            # Pull requests with the same head have different locks, so their jobs run at the same time.
            await context.changes.change(MERGE_WATCH.of(context.repository.id, self.watch), self._add_to_watch)
        # No refresh begins before this is stored: with a `watch`, the plan has the lock of the pull request.
        refresh = await next_refresh(context.changes, context.repository, self.number)
        not_before = self.reported_at + SETTLE_SECONDS if self.reported_at is not None else None
        is_new = await context.changes.announce(REFRESH_EVENT, context.repository, refresh, not_before=not_before)
        template = texts.REFRESH_REQUESTED if is_new else texts.REFRESH_PENDING
        return Applied(template.format(number=self.number), changed=is_new)

    def _add_to_watch(self, watched: WatchedCommit | None) -> WatchedCommit | None:
        numbers = watched.numbers if watched is not None else ()
        return WatchedCommit((*numbers, self.number)) if self.number not in numbers else None


@dataclass(frozen=True, slots=True)
class EndPendingMerge(StoredEffect):
    """End a pending merge, unless a newer one has replaced it."""

    number: int
    pending: PendingMerge

    @property
    def effect_key(self) -> str:
        """The pull request."""
        return f"merge-end:{self.number}"

    async def store(self, context: StoreContext) -> Applied:
        """Check which merge is stored, then end it."""
        stored = await pending_merge(context.changes, context.repository.id, self.number)
        if stored is not None and not stored.is_same(self.pending):
            return Applied(texts.IS_PENDING.format(sha=stored.sha[:7]), changed=False)
        await _change_request(context, self.number, None, self.pending.asked_at)
        return Applied(texts.NONE_PENDING)


async def _change_request(context: StoreContext, number: int, pending: PendingMerge | None, moment: str) -> bool:
    newest = True

    def change(stored: MergeRequest | None) -> MergeRequest | None:
        nonlocal newest
        replacement = request_after(stored, pending, moment)
        newest = replacement is not None
        return replacement

    await context.changes.change(MERGE_REQUEST.of(context.repository.id, number), change)
    return newest
