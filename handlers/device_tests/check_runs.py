"""The check run of a job, while there are no results: queued, in progress, or ended without any.

It is written once for each step. `handlers.results.check_runs` writes the results.
"""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.urls import linkable
from bot.effects.checks import PutCheckRun
from bot.plan.handler import ConcludeStage, Context, Plan, Router
from bot.plan.outcome import EffectOutcomes
from bot.plan.page_links import pull_page_url
from bot.results.service import RESULTS
from bot.results.store.commit import commit_state
from handlers.device_tests import texts
from handlers.device_tests.commands import TEST_ON
from handlers.device_tests.degraded.targets import degraded_targets
from handlers.device_tests.degraded.texts import degraded_notice
from handlers.device_tests.effects import DEVICE_CHECK, NoteShownStep
from handlers.device_tests.model import ShownStep
from handlers.device_tests.paused.records import paused_targets
from handlers.device_tests.paused.texts import paused_notice
from handlers.device_tests.store import JOBS, UnknownJob
from handlers.device_tests.texts import step_content
from handlers.device_tests.waiting import queue_place
from handlers.results.config import LAB_RESULTS
from handlers.results.effects import RequestCheckRun

NAME = "device-job-steps"

router = Router()


@dataclass(frozen=True, slots=True)
class WrittenStep:
    """The step that a job's check run is written for."""

    lab: str
    job: str
    step: int


async def note_step(context: Context, written: WrittenStep, outcomes: EffectOutcomes) -> Plan:
    """Note the step, unless it could not be written: then the sweep announces it again."""
    if outcomes.failures:
        return Plan(why=texts.WHY_STEP_FAILED)
    return Plan((NoteShownStep(written.lab, written.job, written.step),))


# Not bound to a key of app.yaml: open check runs must end even after `results`, or the repository, was removed.
@router.on(DEVICE_CHECK.name, name=NAME, conclude=ConcludeStage(WrittenStep, note_step), after_removal=True)
async def show_step(context: Context) -> Plan:
    """Write the job's current step into its check run."""
    # Not the current time: so a dry run shows the same plan, and a step that was announced later counts as newer.
    as_of, store = context.delivery.received_at, context.part(JOBS)
    check = DEVICE_CHECK.read(context.delivery.payload)
    try:
        job = await store.find(check.lab, check.job)
    except UnknownJob:
        return Plan(why=texts.WHY_UNKNOWN_JOB.format(job=check.job))
    if job.shown >= job.to_show:
        return Plan(why=texts.WHY_SHOWN)
    written = WrittenStep(job.lab, job.id, int(job.to_show))
    if job.to_show is ShownStep.ENDED and (await context.part(RESULTS).read(commit_state, job.about, job.sha)).suites:
        # The lab has tested this commit on its own, or for an earlier request. Those results say more than this end.
        request = RequestCheckRun(job.lab, job.target, job.sha)
        return Plan((request,), why=texts.WHY_RESULTS, conclusion_basis=written)
    results = context.config.of(LAB_RESULTS)
    lab = results.labs.get(job.lab) if results else None
    place = await queue_place(store, context.config, job)
    test_command = f"{context.app_config.mentions[0]} {TEST_ON.name} {job.target}"
    degraded = (await degraded_targets(context.records, context.repository.id)).get(job.about.full_name)
    settings = lab.targets.get(job.target) if lab else None
    notice = degraded_notice(degraded, settings.tier) if settings else ""
    paused = await paused_targets(context.records, context.repository.id, as_of)
    notice = notice or paused_notice(paused.get(job.about.full_name))
    content = step_content(job, place, lab.contacts if lab else (), test_command, notice)
    page = linkable(job.log_url) or pull_page_url(context, job.pull_request)
    put = PutCheckRun(
        job.about.check_name,
        job.sha,
        job.run_id or job.id,
        content,
        as_of,
        details_url=page,
        head_since=job.requested_at,
    )
    return Plan((put,), why=content.title, conclusion_basis=written)
