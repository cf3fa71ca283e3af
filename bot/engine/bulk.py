"""Replay everything that has failed since a moment, for example in an outage that was longer than the tries."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from bot.core.errors import OUTAGE_PATIENCE
from bot.engine.journal import FAILED, DeliveryRecord, Journal
from bot.engine.replay import POLL, replay
from bot.engine.store import Store

PAGE = 200
"""Deliveries that are read at once."""

BulkProgress = Callable[[int, int, int], None]
"""Hears how many deliveries were put to the queue, how many have ended, and how many there are."""


async def failed_since(journal: Journal, since: float, repository: str = "") -> list[DeliveryRecord]:
    """Return the deliveries with a failure at `since` (seconds since 1970) or later, oldest first.

    With a `repository` (`owner/name`, in any case) only those about it.
    """
    found: list[DeliveryRecord] = []
    before: int | None = None
    while page := await journal.recent(PAGE, before, failed=True):
        before = page[-1].job.job_id
        found += [one for one in page if _failed_at(one) >= since and _is_about(one, repository)]
        if page[-1].received_at < since - 2 * OUTAGE_PATIENCE:  # what is older had failed before
            break
    return sorted(found, key=lambda record: record.job.job_id)


async def replay_all(
    store: Store,
    journal: Journal,
    guids: Sequence[str],
    *,
    interval: float,
    patience: float,
    progress: BulkProgress,
) -> list[DeliveryRecord]:
    """Replay deliveries in this order, one after each `interval` seconds, and wait until they are done.

    Returns how they stand then, or when `patience` seconds have passed since the last was put to the queue.
    """
    for number, guid in enumerate(guids):
        if number:
            await asyncio.sleep(interval)
        await replay(store, journal, guid)
        progress(number + 1, 0, len(guids))
    clock = asyncio.get_running_loop().time
    deadline, ended = clock() + patience, -1
    while True:
        records = await _as_they_stand(journal, guids)
        settled = sum(record.settled for record in records)
        if settled != ended:
            progress(len(guids), settled, len(guids))
        ended = settled
        if ended == len(records) or clock() >= deadline:
            return records
        await asyncio.sleep(POLL)


async def _as_they_stand(journal: Journal, guids: Sequence[str]) -> list[DeliveryRecord]:
    found: dict[str, DeliveryRecord] = {}
    for first in range(0, len(guids), PAGE):
        found |= await journal.deliveries(guids[first : first + PAGE])
    return [found[guid] for guid in guids if guid in found]


def _failed_at(record: DeliveryRecord) -> float:
    return max((job.at or record.received_at for job in record.jobs if job.state == FAILED), default=0.0)


def _is_about(record: DeliveryRecord, repository: str) -> bool:
    return not repository or record.repository.lower() == repository.lower()
