"""Replay a delivery: repeat its failed jobs or, if nothing failed, plan it again. Applied effects are not repeated.

`replay_all` replays all deliveries that failed since a moment, such as those of an outage that outlasted all retries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from bot.core.errors import OUTAGE_PATIENCE, UserError
from bot.core.events import Delivery, intent_key
from bot.engine.jobs.definitions import replay_job
from bot.engine.jobs.journal import FAILED, DeliveryRecord, Journal
from bot.engine.jobs.store import Store
from bot.engine.processor import ConclusionJob, EffectState, EndedEffect, PlannedEffect, PlannedEffects, Processor
from bot.engine.worker.repeat import repeat
from bot.engine.worker.tasks import Tasks

POLL = 0.2
"""Seconds between two checks whether a replay has ended."""

UNKNOWN_GUID = "No delivery {guid} is stored. `nightjar deliveries` lists the stored ones."
PLANNING_FAILED = "{kind}: {error}"

PAGE = 200
"""Deliveries that are read at once."""

Progress = Callable[[DeliveryRecord], None]
"""Gets the state of a delivery after each change."""
BulkProgress = Callable[[int, int, int], None]
"""Gets the number of deliveries that were queued, of those that have ended, and of all."""


async def replay(store: Store, journal: Journal, guid: str) -> None:
    """Queue the jobs of a delivery that must run again. Raises `UserError` if the GUID is unknown."""
    record = await stored_record(journal, guid)
    failed = [job.job_id for job in record.jobs if job.state == FAILED]
    if failed:
        await repeat(store, record, failed)
    elif record.settled:
        number = len(record.replays) + 1
        await store.defer([replay_job(guid, number, record.job.job_id, record.received_at, record.lock)])


async def finished(journal: Journal, guid: str, *, patience: float | None, progress: Progress | None) -> DeliveryRecord:
    """Wait until all jobs of a delivery have ended, or for `patience` seconds; return the state of the delivery then.

    `progress` is called with every change.
    """
    last_record = None
    clock = asyncio.get_running_loop().time
    deadline = None if patience is None else clock() + patience
    while True:
        record = await stored_record(journal, guid)
        if record != last_record and progress is not None:
            progress(record)
        last_record = record
        if record.settled or (deadline is not None and clock() >= deadline):
            return record
        await asyncio.sleep(POLL)


async def stored_record(journal: Journal, guid: str) -> DeliveryRecord:
    """Return the delivery of a GUID. Raises `UserError` if there is none."""
    record = await journal.delivery(guid)
    if record is None:
        raise UserError(UNKNOWN_GUID.format(guid=guid))
    return record


async def dry_run(journal: Journal, tasks: Tasks, guid: str) -> dict[str, Any]:
    """Plan a delivery as if it came in now, and return the plans as JSON. Nothing is written anywhere.

    Raises `UserError` for a GUID that is not stored.
    """
    record = await stored_record(journal, guid)
    return await planned_for(tasks.processor, await tasks.delivery(record.job.job_id, guid))


async def planned_for(processor: Processor, delivery: Delivery) -> dict[str, Any]:
    """Plan a delivery, which need not be stored, and return the plans as JSON. Nothing is written anywhere."""
    routing = await processor.handlers_for(delivery)
    intent = intent_key(delivery)
    plans = [await planned_by(processor, delivery, handler) for handler in routing.handlers]
    return {
        "guid": delivery.guid,
        "event": delivery.event,
        "action": delivery.action,
        "repository": delivery.repository_name,
        "intent": intent,
        "ignored": routing.reason if not routing.handlers else "",
        "plans": plans,
    }


async def planned_by(processor: Processor, delivery: Delivery, handler: str) -> dict[str, Any]:
    """Return the plan and the conclusion that one handler would make for a delivery, or its error, as JSON."""
    intent = intent_key(delivery)
    try:
        planned = await processor.plan(delivery, handler, intent)
        concluded = await _concluded(processor, delivery, handler, intent, planned)
    except Exception as error:  # the answer also shows the error of a handler
        return {"handler": handler, "error": PLANNING_FAILED.format(kind=type(error).__name__, error=error)}
    conclusion = {"why": concluded.why, "effects": _effects_json(concluded.effects)} if concluded else None
    return {"handler": handler, "why": planned.why, "effects": _effects_json(planned.effects), "conclusion": conclusion}


async def _concluded(
    processor: Processor, delivery: Delivery, handler: str, intent: str, planned: PlannedEffects
) -> PlannedEffects | None:
    """Return the conclusion of a handler if every effect of its plan were applied; None without a conclude stage."""
    if planned.conclusion_basis is None:
        return None
    ended = [
        EndedEffect(effect.target, effect.effect, EffectState.APPLIED, "", simulated=True) for effect in planned.effects
    ]
    return await processor.conclude(delivery, ConclusionJob(handler, intent, planned.conclusion_basis, ended))


def _effects_json(effects: Sequence[PlannedEffect]) -> list[dict[str, Any]]:
    return [{"target": effect.target, **effect.effect} for effect in effects]


async def failed_since(journal: Journal, since: float, repository: str = "") -> list[DeliveryRecord]:
    """Return the deliveries with a failure at `since` (seconds since 1970) or later, oldest first.

    With a `repository` (`owner/name`, in any case) return only its deliveries.
    """
    records: list[DeliveryRecord] = []
    before_id: int | None = None
    while page := await journal.recent(PAGE, before_id, failed=True):
        before_id = page[-1].job.job_id
        records += [record for record in page if _failed_at(record) >= since and _belongs_to(record, repository)]
        if page[-1].received_at < since - 2 * OUTAGE_PATIENCE:  # older deliveries had failed for good before
            break
    return sorted(records, key=lambda record: record.job.job_id)


async def replay_all(
    store: Store,
    journal: Journal,
    guids: Sequence[str],
    *,
    interval: float,
    patience: float,
    progress: BulkProgress,
) -> list[DeliveryRecord]:
    """Replay deliveries in this order, one every `interval` seconds, and wait until all have ended.

    Returns their states then, or `patience` seconds after the last was queued.
    """
    for number, guid in enumerate(guids):
        if number:
            await asyncio.sleep(interval)
        await replay(store, journal, guid)
        progress(number + 1, 0, len(guids))
    clock = asyncio.get_running_loop().time
    deadline, ended = clock() + patience, -1
    while True:
        records = await _stored_records(journal, guids)
        settled = sum(record.settled for record in records)
        if settled != ended:
            progress(len(guids), settled, len(guids))
        ended = settled
        if ended == len(records) or clock() >= deadline:
            return records
        await asyncio.sleep(POLL)


async def _stored_records(journal: Journal, guids: Sequence[str]) -> list[DeliveryRecord]:
    records: dict[str, DeliveryRecord] = {}
    for first in range(0, len(guids), PAGE):
        records |= await journal.deliveries(guids[first : first + PAGE])
    return [records[guid] for guid in guids if guid in records]


def _failed_at(record: DeliveryRecord) -> float:
    return max((job.at or record.received_at for job in record.jobs if job.state == FAILED), default=0.0)


def _belongs_to(record: DeliveryRecord, repository: str) -> bool:
    return not repository or record.repository.lower() == repository.lower()
