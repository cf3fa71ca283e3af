"""Run failed jobs of a delivery again: all of them, on request, or one by itself after a quiet hour.

What made a job fail may have ended meanwhile without the job: processes that something outside killed, or a release
that could not read what another one had stored.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import LiteralString

from procrastinate.connector import BaseAsyncConnector
from procrastinate.jobs import Job

from bot.core.errors import OUTAGE_PATIENCE
from bot.engine.jobs.definitions import resume_job
from bot.engine.jobs.journal import FAILED, DeliveryRecord, Journal, PlanRecord, PlanStage
from bot.engine.jobs.once import defer_once
from bot.engine.jobs.store import Store
from bot.engine.retry import QUIET_SECONDS

# Not `status IN …`, which would lead SQLite through every job that waits.
CANCEL: LiteralString = """
UPDATE procrastinate_jobs SET status = 'cancelled'
 WHERE id = ANY(%(ids)s) AND status NOT IN ('doing', 'succeeded', 'cancelled', 'aborting')
"""


async def resume_later(connector: BaseAsyncConnector, job: Job) -> bool:
    """Store that a job, which is about to fail, runs again after `QUIET_SECONDS`; return whether it will.

    It will not if the job belongs to no delivery, or if GitHub no longer offers to redeliver that.
    """
    now = time.time()
    guid, received_at = job.task_kwargs.get("guid"), job.task_kwargs.get("received_at")
    # The job of a delivery has the delivery's own ID.
    delivery_job = job.task_kwargs.get("delivery_job", job.id)
    if job.id is None or not isinstance(guid, str) or not isinstance(received_at, int | float):
        return False
    if not isinstance(delivery_job, int):
        return False
    if now + QUIET_SECONDS > received_at + OUTAGE_PATIENCE:
        return False
    # When the job ends as failed, this try is counted as well.
    await defer_once(connector, [resume_job(guid, delivery_job, job.id, job.attempts + 1, now, QUIET_SECONDS)])
    return True


async def resume(store: Store, journal: Journal, guid: str, job_id: int, attempts: int) -> bool:
    """Queue a failed job of a delivery again, with its note and tries; return False if it is no longer as it failed."""
    record = await journal.delivery(guid)
    jobs = record.jobs if record is not None else []
    job = next((job for job in jobs if job.job_id == job_id), None)
    if record is None or job is None or job.state != FAILED or job.attempts != attempts:
        return False
    await repeat(store, record, [job_id], resumed=job_id)
    return True


async def repeat(store: Store, record: DeliveryRecord, failed: Sequence[int], resumed: int | None = None) -> None:
    """Queue failed jobs again, and the conclusions from them. The job `resumed` keeps its note and tries."""
    conclusions = _conclusions_again(record, failed)
    superseded = _superseded(record, failed, conclusions)
    # What failed returns to the queue last: after a crash in between it is still failed, and the command can be
    # repeated.
    await store.connector.execute_query_async(CANCEL, ids=superseded)
    again = [plan.job.job_id for plan in conclusions]
    for job in again:
        await store.restart_conclusion(job)
    jobs = dict.fromkeys([*failed, *again])
    await store.begin_anew([job for job in jobs if job not in superseded], resumed)


def _superseded(record: DeliveryRecord, failed: Sequence[int], conclusions: Sequence[PlanRecord]) -> list[int]:
    """Find the jobs that would report a failure to people although a failed plan is now tried again."""
    again = {plan.handler for plan in record.plans if plan.stage is PlanStage.PLAN and plan.job.job_id in failed}
    answers = [plan for plan in record.plans if plan.stage is PlanStage.ANSWER and plan.handler in again]
    effects = [effect.job for plan in (*answers, *conclusions) for effect in plan.effects]
    jobs = [*(plan.job for plan in answers), *effects]
    return [job.job_id for job in jobs if job.state == FAILED or not job.settled]


def _conclusions_again(record: DeliveryRecord, failed: Sequence[int]) -> list[PlanRecord]:
    """Find the conclusions from failed effects that are now tried again."""
    effects = [
        (plan.handler, effect) for plan in record.plans if plan.stage is PlanStage.PLAN for effect in plan.effects
    ]
    again = {handler for handler, effect in effects if effect.job.job_id in failed}
    concluded = [plan for plan in record.plans if plan.stage is PlanStage.CONCLUSION and plan.handler in again]
    return [plan for plan in concluded if plan.job.settled]
