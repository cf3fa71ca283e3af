"""Do a delivery again: what failed of it, or, where nothing did, the whole of it. What was applied stays applied."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, LiteralString

from bot.core.errors import UserError
from bot.core.events import Delivery, intent_key
from bot.engine.jobs import replay_job
from bot.engine.journal import FAILED, DeliveryRecord, Journal, PlanRecord
from bot.engine.processor import PlannedEffect
from bot.engine.store import Store
from bot.engine.tasks import Tasks

POLL = 0.2
"""Seconds between two looks while waiting for a replay to end."""

UNKNOWN_GUID = "No delivery {guid} is known here. `nightjar deliveries` lists those that are."
PLANNING_FAILED = "{kind}: {error}"

CANCEL: LiteralString = """
UPDATE procrastinate_jobs SET status = 'cancelled'
 WHERE id = ANY(%(ids)s) AND status IN ('todo', 'failed', 'aborted')
"""

Progress = Callable[[DeliveryRecord], None]


async def replay(store: Store, journal: Journal, guid: str) -> None:
    """Put to the queue what there is to do again of a delivery. Raises `UserError` for a GUID that is not known."""
    record = await known(journal, guid)
    failed = [job.job_id for job in record.jobs if job.state == FAILED]
    if failed:
        superseded = _superseded(record)
        await store.connector.execute_query_async(CANCEL, ids=superseded)
        await store.begin_anew([job for job in [*failed, *_closing_again(record)] if job not in superseded])
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
    """Return the delivery of a GUID; raise `UserError` where there is none."""
    record = await journal.delivery(guid)
    if record is None:
        raise UserError(UNKNOWN_GUID.format(guid=guid))
    return record


def _superseded(record: DeliveryRecord) -> list[int]:
    """Find the jobs that were to tell people of failures which are now given another chance."""
    again = {plan.handler for plan in record.plans if not plan.answer and plan.job.state == FAILED}
    answers = [plan for plan in record.plans if plan.answer and plan.handler in again]
    jobs = [job for plan in answers for job in (plan.job, *(effect.job for effect in plan.effects))]
    return [job.job_id for job in jobs if job.state == FAILED or not job.settled]


def _closing_again(record: DeliveryRecord) -> list[int]:
    """Find the closing effects that have told of failures which are now given another chance."""
    by_handler: dict[tuple[str, bool], list[PlanRecord]] = {}
    for plan in record.plans:
        by_handler.setdefault((plan.handler, plan.answer), []).append(plan)
    closing: list[int] = []
    for plans in by_handler.values():
        effects = [effect for plan in plans for effect in plan.effects]
        if any(effect.job.state == FAILED for effect in effects):
            closing += [effect.job.job_id for effect in effects if effect.closing and effect.job.state != FAILED]
    return closing


async def dry_run(journal: Journal, tasks: Tasks, guid: str) -> dict[str, Any]:
    """Plan a delivery as if it came in now, and return the plans as JSON. Nothing is written anywhere.

    Raises `UserError` for a GUID that is not known.
    """
    record = await known(journal, guid)
    return await planned_for(tasks, await tasks.delivery(record.job.job_id))


async def planned_for(tasks: Tasks, delivery: Delivery) -> dict[str, Any]:
    """Plan a delivery that need not have come in, and return the plans as JSON. Nothing is written anywhere."""
    processor = tasks.processor
    routing = await processor.handlers_for(delivery)
    intent = intent_key(delivery)
    plans: list[dict[str, Any]] = []
    for handler in routing.handlers:
        try:
            planned = await processor.plan(delivery, handler, intent)
        except Exception as error:  # one handler's fault is part of the answer
            plans.append({"handler": handler, "error": PLANNING_FAILED.format(kind=type(error).__name__, error=error)})
        else:
            closing = _shown([planned.closing] if planned.closing else [])
            effects = _shown(planned.effects)
            plans.append({"handler": handler, "why": planned.why, "effects": effects, "closing": closing})
    return {
        "guid": delivery.guid,
        "event": delivery.event,
        "action": delivery.action,
        "repository": delivery.repository,
        "intent": intent,
        "ignored": routing.reason if not routing.handlers else "",
        "plans": plans,
    }


def _shown(effects: Sequence[PlannedEffect]) -> list[dict[str, Any]]:
    return [{"target": effect.target, **effect.effect} for effect in effects]
