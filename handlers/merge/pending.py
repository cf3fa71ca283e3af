"""The pending merges of a repository: their records, and how each is refreshed.

A status or a check run names only a commit and is not ordered by pull request. So it is only a trigger: if a merge
waits for that commit, an internal event requests a refresh of the pull request, in order with everything else of that
pull request. GitHub's answer during the refresh decides.

Refreshes are numbered by pull request. A request is always for the next refresh that has not begun; when that one
begins, before it reads anything, the number is incremented. So a burst of a hundred checks causes one or two refreshes,
and no event is lost: GitHub's answer covers what happened before the refresh began, and a later event requests another.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.engine.internal import InternalEvent
from handlers.merge.records import (
    MERGE_REQUEST,
    MERGE_WATCH,
    REFRESH_COUNT,
    MergeRequest,
    PendingMerge,
    RefreshCount,
    WatchedCommit,
)

if TYPE_CHECKING:
    from bot.core.events import Delivery, Repository
    from bot.engine.records import RecordReader, Records

MOST_WAITING = 1_000
"""Pull requests of one repository that the timer refreshes, the ones that began to wait last."""


def request_after(stored: MergeRequest | None, pending: PendingMerge | None, moment: str) -> MergeRequest | None:
    """Return the request to store in place of `stored`, None if that one is newer.

    `moment` (ISO 8601) is when the merge was asked for, or, if `pending` is None, when it ended; if empty, the time is
    unknown and any pending merge ends. The record stores it, so that a late request does not restart a merge that has
    ended.
    """
    has_ended = stored is not None and stored.pending is None
    stored_at = "" if stored is None else stored.pending.asked_at if stored.pending else stored.ended_at
    if pending is None:
        return MergeRequest(ended_at=max(moment, stored_at)) if not moment or moment >= stored_at else None
    if pending.queued and has_ended:
        # This is not a request but the state at GitHub: to remove it from the queue, we must know that it is there.
        return MergeRequest(pending)
    # An equal time is the request that has ended, applied once more.
    return None if moment < stored_at or (has_ended and moment == stored_at) else MergeRequest(pending)


async def pending_merge(records: RecordReader, repository_id: int, number: int) -> PendingMerge | None:
    """Return the pending merge of a pull request, None where it has none."""
    request = await records.get(MERGE_REQUEST.of(repository_id, number))
    return request.pending if request is not None else None


async def watching_pulls(records: Records, repository_id: int, sha: str) -> tuple[int, ...]:
    """Return the pull requests whose merge waits for a commit."""
    return (await records.get(MERGE_WATCH.of(repository_id, sha)) or WatchedCommit()).numbers


async def waiting_pulls(records: Records, repository_id: int) -> list[int]:
    """Return a repository's pull requests with a pending merge, the longest waiting first, for the timer.

    Found by the record of each pull request: one record with a list would lose one of two concurrent writes.
    """
    requests = await records.under(MERGE_REQUEST, repository_id)
    pending = [(request.pending, int(number)) for number, request in requests.items()]
    ordered = sorted((merge.asked_at, number) for merge, number in pending if merge is not None and not merge.queued)
    return [number for _, number in ordered][-MOST_WAITING:]


@dataclass(frozen=True, slots=True)
class RefreshEvent:
    """A refresh: check whether a pull request can be merged. `turn` is the number of the refresh."""

    number: int
    turn: int


REFRESH_EVENT = InternalEvent(
    "nightjar.merge",
    RefreshEvent,
    guid=lambda repository, refresh: f"merge:{repository}#{refresh.number}:{refresh.turn}",
    lock=lambda repository, refresh: f"pr:{repository}#{refresh.number}",
    number=lambda refresh: refresh.number,
)


async def next_refresh(records: RecordReader, repository: Repository, number: int) -> RefreshEvent:
    """Return the next refresh of a pull request that has not begun."""
    return RefreshEvent(number, await _begun(records, repository.id, number))


async def note_refresh(records: Records, delivery: Delivery) -> None:
    """Store that a refresh has begun, so that later requests are for the next one.

    Called once for each such delivery, before anything is planned. A replayed refresh changes nothing.
    """
    refresh, repository_id = REFRESH_EVENT.read(delivery.payload), delivery.payload.integer("repository", "id")
    if refresh.turn >= await _begun(records, repository_id, refresh.number):
        await records.put(REFRESH_COUNT.of(repository_id, refresh.number), RefreshCount(refresh.turn + 1))


async def _begun(records: RecordReader, repository_id: int, number: int) -> int:
    return (await records.get(REFRESH_COUNT.of(repository_id, number)) or RefreshCount()).begun
