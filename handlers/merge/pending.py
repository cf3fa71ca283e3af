"""The pending merges of a repository: their records, and how each is refreshed.

A status or a check run names a commit alone, and carries no pull request's lock. So it is a hint and nothing more:
where somebody waits for that commit, a look at the pull request is asked for, by a delivery of our own that is handled
in order with everything else of its pull request. It is GitHub's answer at that look that counts.

Looks are numbered by pull request. Whoever asks for one asks for the next that has not begun; as soon as that begins,
before anything is read, the number moves on. So a burst of a hundred checks makes a look or two, and none is lost: what
was told before a look began, GitHub shows to it, and what is told later asks for another.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from bot.core.events import Person
from bot.engine.internal import InternalEvent
from bot.engine.records import Record

if TYPE_CHECKING:
    from bot.core.events import Delivery, Repository
    from bot.engine.records import Records

MOST_WAITING = 1_000
"""Pull requests of one repository that are looked at by the timer, the ones that began to wait last."""


@dataclass(frozen=True, slots=True)
class PendingMerge:
    """A merge that somebody asked for, of this commit into this branch, where they asked (`url`) and when (ISO 8601).

    `queued`: it is in GitHub's merge queue since, where we put it; all that is left to do is to take it out again.
    `refused`: GitHub has refused it for what it does not show to us, and people were told that it waits for that.
    """

    sha: str
    base: str
    by: Person
    url: str
    asked_at: str
    queued: bool = False
    refused: bool = False

    def is_same(self, other: PendingMerge) -> bool:
        """Say whether both were asked for by the same words, whatever became of them since."""
        return replace(self, queued=other.queued, refused=other.refused) == other


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """The newest request about the merge of a pull request: one that is pending, or when the last one ended.

    `ended_at` is in ISO 8601, empty where that is not known.
    """

    pending: PendingMerge | None = None
    ended_at: str = ""


@dataclass(frozen=True, slots=True)
class WatchedCommit:
    """The pull requests that are to be refreshed when something happens to a commit."""

    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RefreshCount:
    """How many refreshes of a pull request have begun."""

    begun: int = 0


MERGE_REQUEST = Record("merge", 1, MergeRequest, "the pending merge of a pull request", days=365)
MERGE_WATCH = Record("merge-watch", 1, WatchedCommit, "the pull requests whose merge waits for a commit", days=90)
REFRESH_COUNT = Record("merge-refreshes", 1, RefreshCount, "how many refreshes of a pull request have begun", days=365)
RECORDS = (MERGE_REQUEST, MERGE_WATCH, REFRESH_COUNT)


def request_after(known: MergeRequest | None, pending: PendingMerge | None, moment: str) -> MergeRequest | None:
    """Return what to store in place of the known request, None where that is the newer one.

    `moment` (ISO 8601) is when the merge was asked for, or for None when it ended; empty: not known, and whatever is
    pending ends. It stays in the record, so that a request that comes late brings back nothing that has ended.
    """
    over = known is not None and known.pending is None
    last = "" if known is None else known.pending.asked_at if known.pending else known.ended_at
    if pending is None:
        return MergeRequest(ended_at=max(moment, last)) if not moment or moment >= last else None
    if pending.queued and over:
        # No request but its state at GitHub: to take it out of the queue somebody has to know that it is there.
        return MergeRequest(pending)
    return None if moment < last or (over and moment == last) else MergeRequest(pending)


async def pending_merge(records: Records, repository_id: int, number: int) -> PendingMerge | None:
    """Return the pending merge of a pull request, None where it has none."""
    known = await records.get(MERGE_REQUEST.of(repository_id, number))
    return known.pending if known is not None else None


async def watching(records: Records, repository_id: int, sha: str) -> tuple[int, ...]:
    """Return the pull requests whose merge waits for a commit."""
    return (await records.get(MERGE_WATCH.of(repository_id, sha)) or WatchedCommit()).numbers


async def waiting(records: Records, repository_id: int) -> list[int]:
    """Return a repository's pull requests for which a merge waits, the first that began to wait first, for the timer.

    Found by what is stored for each: of a list of them, two that are written in the same instant would lose one.
    """
    found = await records.under(MERGE_REQUEST, repository_id)
    pending = [(request.pending, int(number)) for number, request in found.items()]
    waits = sorted((one.asked_at, number) for one, number in pending if one is not None and not one.queued)
    return [number for _, number in waits][-MOST_WAITING:]


@dataclass(frozen=True, slots=True)
class RefreshEvent:
    """A refresh of a pull request: whether it can be merged. Its refreshes are numbered by `turn`."""

    number: int
    turn: int


REFRESH_EVENT = InternalEvent(
    "nightjar.merge",
    RefreshEvent,
    guid=lambda repository, refresh: f"merge:{repository}#{refresh.number}:{refresh.turn}",
    lock=lambda repository, refresh: f"pr:{repository}#{refresh.number}",
    number=lambda refresh: refresh.number,
)


async def next_refresh(records: Records, repository: Repository, number: int) -> RefreshEvent:
    """Return the next refresh of a pull request that has not begun."""
    return RefreshEvent(number, await _begun(records, repository.id, number))


async def note_refresh(records: Records, delivery: Delivery) -> None:
    """Note that a look begins: whoever asks for one from now on gets the one after it.

    Called once for each delivery, before anything is planned. One that is replayed is none that others count on.
    """
    if delivery.event != REFRESH_EVENT.name:
        return
    refresh, repository_id = REFRESH_EVENT.read(delivery.payload), delivery.payload.integer("repository", "id")
    if refresh.turn >= await _begun(records, repository_id, refresh.number):
        await records.put(REFRESH_COUNT.of(repository_id, refresh.number), RefreshCount(refresh.turn + 1))


async def _begun(records: Records, repository_id: int, number: int) -> int:
    return (await records.get(REFRESH_COUNT.of(repository_id, number)) or RefreshCount()).begun
