"""Run failed jobs of a delivery again: all of them on request, or a single job after a quiet hour.

The cause of a failure may end without the job: something outside killed the processes, or a release could not read the
data that another release had stored.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import LiteralString

from procrastinate.jobs import Job

from bot.core.errors import OUTAGE_PATIENCE
from bot.engine.jobs.definitions import resume_job
from bot.engine.jobs.journal import FAILED, DeliveryRecord, Journal, PlanRecord, PlanStage
from bot.engine.jobs.once import defer_once
from bot.engine.jobs.store import Store, begin_anew, restart_conclusion
from bot.engine.retry import QUIET_SECONDS
from bot.engine.sql.transactions import Connector, Steps

# Not `status IN …`, which would lead SQLite through every job that waits.
CANCEL: LiteralString = """
UPDATE procrastinate_jobs SET status = 'cancelled'
 WHERE id = ANY(%(ids)s) AND status NOT IN ('doing', 'succeeded', 'cancelled', 'aborting')
"""


async def resume_later(connector: Connector, job: Job) -> bool:
    """Schedule another run of a job, which is about to fail, after `QUIET_SECONDS`; return whether it is scheduled.

    It is not if the job belongs to no delivery, or if the delivery is then too old for GitHub to redeliver it.
    """
    moment = time.time()
    guid, received_at = job.task_kwargs.get("guid"), job.task_kwargs.get("received_at")
    # The job of a delivery has the delivery's own ID.
    delivery_job = job.task_kwargs.get("delivery_job", job.id)
    if job.id is None or not isinstance(guid, str) or not isinstance(received_at, int | float):
        return False
    if not isinstance(delivery_job, int):
        return False
    if moment + QUIET_SECONDS > received_at + OUTAGE_PATIENCE:
        return False
    # When the job ends as failed, this try is counted as well.
    await defer_once(connector, [resume_job(guid, delivery_job, job.id, job.attempts + 1, moment, QUIET_SECONDS)])
    return True


async def resume(store: Store, journal: Journal, guid: str, job_id: int, attempts: int) -> bool:
    """Requeue a failed job of a delivery with its note and tries; return False if it has been tried again meanwhile."""
    record = await journal.delivery(guid)
    jobs = record.jobs if record is not None else []
    job = next((job for job in jobs if job.job_id == job_id), None)
    if record is None or job is None or job.state != FAILED or job.attempts != attempts:
        return False
    await repeat(store, record, [job_id], resumed=job_id)
    return True


async def repeat(store: Store, record: DeliveryRecord, failed_ids: Sequence[int], resumed: int | None = None) -> None:
    """Requeue failed jobs and the conclusions that depend on them. The job `resumed` keeps its note and tries."""
    conclusions = _conclusions_to_repeat(record, failed_ids)
    superseded = _superseded(record, failed_ids, conclusions)
    conclusion_ids = [plan.job.job_id for plan in conclusions]
    jobs = dict.fromkeys([*failed_ids, *conclusion_ids])

    def steps() -> Steps[None]:
        yield CANCEL, {"ids": superseded}
        for conclusion_id in conclusion_ids:
            yield from restart_conclusion(conclusion_id)
        yield from begin_anew([job for job in jobs if job not in superseded], resumed)

    await store.connector.transact(steps)


def _superseded(record: DeliveryRecord, failed_ids: Sequence[int], conclusions: Sequence[PlanRecord]) -> list[int]:
    """Return the IDs of the jobs that would report a failure to people although the failed plan is now tried again."""
    replanned = {
        plan.handler for plan in record.plans if plan.stage is PlanStage.PLAN and plan.job.job_id in failed_ids
    }
    answers = [plan for plan in record.plans if plan.stage is PlanStage.ANSWER and plan.handler in replanned]
    effect_jobs = [effect.job for plan in (*answers, *conclusions) for effect in plan.effects]
    jobs = [*(plan.job for plan in answers), *effect_jobs]
    return [job.job_id for job in jobs if job.state == FAILED or not job.settled]


def _conclusions_to_repeat(record: DeliveryRecord, failed_ids: Sequence[int]) -> list[PlanRecord]:
    """Return the conclusions that must run again: they have ended, and an effect of their handler is tried again."""
    handlers = {
        plan.handler
        for plan in record.plans
        if plan.stage is PlanStage.PLAN and any(effect.job.job_id in failed_ids for effect in plan.effects)
    }
    conclusions = [plan for plan in record.plans if plan.stage is PlanStage.CONCLUSION and plan.handler in handlers]
    return [plan for plan in conclusions if plan.job.settled]
