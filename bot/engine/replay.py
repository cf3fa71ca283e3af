"""Replay a delivery: repeat its failed jobs or, if nothing failed, plan it again. Applied effects are not repeated."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from bot.core.errors import UserError
from bot.core.events import Delivery, intent_key
from bot.engine.jobs import replay_job
from bot.engine.journal import FAILED, DeliveryRecord, Journal
from bot.engine.processor import ConclusionJob, EffectState, EndedEffect, PlannedEffect, PlannedEffects, Processor
from bot.engine.repeat import repeat
from bot.engine.store import Store
from bot.engine.tasks import Tasks

POLL = 0.2
"""Seconds between two checks whether a replay has ended."""

UNKNOWN_GUID = "No delivery {guid} is stored. `nightjar deliveries` lists the stored ones."
PLANNING_FAILED = "{kind}: {error}"

Progress = Callable[[DeliveryRecord], None]


async def replay(store: Store, journal: Journal, guid: str) -> None:
    """Queue the jobs of a delivery that must run again. Raises `UserError` if the GUID is unknown."""
    record = await known(journal, guid)
    failed = [job.job_id for job in record.jobs if job.state == FAILED]
    if failed:
        await repeat(store, record, failed)
    elif record.settled:
        number = len(record.replays) + 1
        await store.defer([replay_job(guid, number, record.job.job_id, record.received_at, record.lock)])


async def finished(journal: Journal, guid: str, *, patience: float | None, progress: Progress | None) -> DeliveryRecord:
    """Wait until nothing of a delivery is left to do, or the time is up; return how it stands then.

    `progress` is called with every change that is seen.
    """
    seen = None
    clock = asyncio.get_running_loop().time
    deadline = None if patience is None else clock() + patience
    while True:
        record = await known(journal, guid)
        if record != seen and progress is not None:
            progress(record)
        seen = record
        if record.settled or (deadline is not None and clock() >= deadline):
            return record
        await asyncio.sleep(POLL)


async def known(journal: Journal, guid: str) -> DeliveryRecord:
    """Return the delivery of a GUID. Raises `UserError` if there is none."""
    record = await journal.delivery(guid)
    if record is None:
        raise UserError(UNKNOWN_GUID.format(guid=guid))
    return record


async def dry_run(journal: Journal, tasks: Tasks, guid: str) -> dict[str, Any]:
    """Plan a delivery as if it came in now, and return the plans as JSON. Nothing is written anywhere.

    Raises `UserError` for a GUID that is not known.
    """
    record = await known(journal, guid)
    return await planned_for(tasks.processor, await tasks.delivery(record.job.job_id))


async def planned_for(processor: Processor, delivery: Delivery) -> dict[str, Any]:
    """Plan a delivery, which need not be stored, and return the plans as JSON. Nothing is written anywhere."""
    routing = await processor.handlers_for(delivery)
    intent = intent_key(delivery)
    plans = [await planned_by(processor, delivery, handler) for handler in routing.handlers]
    return {
        "guid": delivery.guid,
        "event": delivery.event,
        "action": delivery.action,
        "repository": delivery.repository,
        "intent": intent,
        "ignored": routing.reason if not routing.handlers else "",
        "plans": plans,
    }


async def planned_by(processor: Processor, delivery: Delivery, handler: str) -> dict[str, Any]:
    """Return as JSON what one handler would plan for a delivery and conclude, or why it cannot."""
    intent = intent_key(delivery)
    try:
        planned = await processor.plan(delivery, handler, intent)
        concluded = await _concluded(processor, delivery, handler, intent, planned)
    except Exception as error:  # one handler's fault is part of the answer
        return {"handler": handler, "error": PLANNING_FAILED.format(kind=type(error).__name__, error=error)}
    conclusion = {"why": concluded.why, "effects": _shown(concluded.effects)} if concluded else None
    return {"handler": handler, "why": planned.why, "effects": _shown(planned.effects), "conclusion": conclusion}


async def _concluded(
    processor: Processor, delivery: Delivery, handler: str, intent: str, planned: PlannedEffects
) -> PlannedEffects | None:
    """Return what a handler would conclude if every effect of its plan were applied; None without a conclude stage."""
    if planned.conclusion_basis is None:
        return None
    ended = [EndedEffect(one.target, one.effect, EffectState.APPLIED, "", simulated=True) for one in planned.effects]
    return await processor.conclude(delivery, ConclusionJob(handler, intent, planned.conclusion_basis, ended))


def _shown(effects: Sequence[PlannedEffect]) -> list[dict[str, Any]]:
    return [{"target": effect.target, **effect.effect} for effect in effects]
