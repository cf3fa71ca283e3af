"""Answer a request to reproduce a failure when its runs have ended, however they ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bot.core.urls import linkable
from bot.core.utc import iso_utc
from bot.effects.comments import REPLY_LIMIT, Reply
from bot.github.text.markdown import truncate
from bot.plan.handler import ConcludeStage, Context, Plan, Router
from bot.results.few_tests import FewTestsOutcome
from handlers.device_tests.check_runs import WrittenStep, note_step
from handlers.device_tests.effects import FEW_TESTS_ENDED, NoteShownStep
from handlers.device_tests.model import DeviceJob, JobEnd, ShownStep
from handlers.device_tests.reproduce import texts
from handlers.device_tests.reproduce.command import REPRODUCE_PURPOSE, issue_of
from handlers.device_tests.reproduce.texts import EarlierRuns, repeat_offer, reproduce_command, reproduced
from handlers.device_tests.store import JOBS, UnknownJob
from handlers.device_tests.texts import WHY_UNKNOWN_JOB

if TYPE_CHECKING:
    from bot.config import RepositoryConfig
    from bot.core.events import Delivery

NAME = "reproduced"
MOST_OFFERS = 3
"""The most answers that a push changes."""
UNWANTED = frozenset({JobEnd.PUSHED, JobEnd.CLOSED, JobEnd.BY_PERSON})
"""Ends that people caused themselves, so that nobody waits for an answer."""

router = Router()


def accepts(delivery: Delivery, _: RepositoryConfig) -> bool:
    """Return whether a job has ended that reproduces a failure."""
    return FEW_TESTS_ENDED.read(delivery.payload).purpose.startswith(REPRODUCE_PURPOSE)


@router.on(
    FEW_TESTS_ENDED.name, name=NAME, conclude=ConcludeStage(WrittenStep, note_step), accepts=accepts, after_removal=True
)
async def answer_reproduced(context: Context) -> Plan:
    """Answer with the failure rates; late results correct the answer."""
    ended, store = FEW_TESTS_ENDED.read(context.delivery.payload), context.part(JOBS)
    try:
        job = await store.find(ended.lab, ended.job)
    except UnknownJob:
        return Plan(why=WHY_UNKNOWN_JOB.format(job=ended.job))
    if not job.outcome and job.end in UNWANTED:
        note = NoteShownStep(job.lab, job.id, int(ShownStep.ENDED))
        return Plan((note,), why=texts.WHY_UNWANTED.format(reason=job.end.value))
    # A job without a pull request is one of an issue; of_pull would read all jobs of the bot.
    others = await store.of_pull(context.repository.id, job.pull_request) if job.pull_request else []
    earlier = earlier_runs(job, others)
    attempts = FewTestsOutcome.load(job.outcome).of(job.few_tests.tests[0])
    if job.outcome:
        counts = {"failed": attempts.failed, "runs": attempts.attempts}
        why = texts.WHY_REPRODUCED.format(test=job.few_tests.tests[0], **counts)
    else:
        why = texts.WHY_NO_RESULT.format(reason=job.end.value)
    written = WrittenStep(job.lab, job.id, int(ShownStep.ENDED))
    return Plan((_answer(context, job, earlier),), why=why, conclusion_basis=written)


def repeat_offers(context: Context, jobs: Sequence[DeviceJob], head: str) -> list[Reply]:
    """Return the answers about failures at earlier heads, each with the offer to repeat its runs at the new head.

    `jobs` are those of the pull request, oldest first. The newest answer about each test on a target is changed.
    """
    newest = {(job.purpose, job.about): job for job in jobs if job.purpose.startswith(REPRODUCE_PURPOSE)}
    replies = []
    for job in list(newest.values())[-MOST_OFFERS:]:
        failed = FewTestsOutcome.load(job.outcome).of(job.few_tests.tests[0]).failed
        if failed and job.sha != head:
            text = repeat_offer(head, reproduce_command(context.app_config.mentions[0], job))
            replies.append(_answer(context, job, earlier_runs(job, jobs), offer=text))
    return replies


def _answer(context: Context, job: DeviceJob, earlier: EarlierRuns | None, *, offer: str = "") -> Reply:
    command = reproduce_command(context.app_config.mentions[0], job)
    text = "\n\n".join(filter(None, [offer, reproduced(job, earlier, linkable(job.log_url), command)]))
    return Reply(issue_of(job), truncate(text, REPLY_LIMIT), iso_utc(job.requested_at), subject=job.id)


def earlier_runs(job: DeviceJob, jobs: Sequence[DeviceJob]) -> EarlierRuns | None:
    """Return the last runs at an earlier head in which the test failed on the same target; None if there are none.

    `jobs` are those of the pull request, oldest first.
    """
    test = job.few_tests.tests[0]
    for other in reversed(jobs):
        is_same = (other.purpose, other.about) == (job.purpose, job.about)
        if is_same and other.sha != job.sha and other.requested_at < job.requested_at:
            attempts = FewTestsOutcome.load(other.outcome).of(test)
            if attempts.failed:
                return EarlierRuns(other.sha, attempts)
    return None
