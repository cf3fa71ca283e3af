"""Turn a request into a job for each target, unless there is one already or the target's budget is used up."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from handlers.device_tests.effects import SubmitDeviceJob
from handlers.device_tests.model import WHOLE_SUITE, FewTests, JobEnd, JobOrigin
from handlers.device_tests.targets import RequestTarget, over_budget

if TYPE_CHECKING:
    from handlers.device_tests.model import DeviceJob, Someone
    from handlers.device_tests.store import JobStore


@dataclass(frozen=True, slots=True)
class JobRequest:
    """Somebody requests tests of a head; `requested_at` is in seconds since 1970."""

    number: int
    sha: str
    origin: JobOrigin
    requested_by: Someone
    requested_at: float
    approval_needed: bool
    purpose: str = ""
    few_tests: FewTests = WHOLE_SUITE
    suites: tuple[str, ...] | None = None
    """The suites to run; None for those that the target names."""


@dataclass(frozen=True, slots=True)
class TargetAnswer:
    """The result of a request for one target: the effect of a new job, an open job, or the budget that is used up.

    There is no reply to a label, so a refused label creates a job that ends at once: its check run has the reason.
    """

    target: RequestTarget
    effect: SubmitDeviceJob | None = None
    open_job: DeviceJob | None = None
    budget: str = ""


async def answer_request(
    store: JobStore, repository_id: int, request: JobRequest, target: RequestTarget
) -> TargetAnswer:
    """Return the result of a request for a target. A repeated request uses no budget."""
    # This comes before the budget: a repeated request costs nothing.
    for job in await store.of_pull(repository_id, request.number):
        requested = (request.sha, target.lab, target.name, request.purpose)
        is_same = (job.sha, job.lab, job.target, job.purpose) == requested
        if is_same and job.is_open:
            return TargetAnswer(target, open_job=job)
    since = day_of(request.requested_at)
    used = await store.requests(repository_id, target.lab, target.name, request.requested_by.id, since)
    if budget := over_budget(target.settings, used):
        by_label = request.origin is JobOrigin.LABEL
        effect = requested_job(request, target, refused=JobEnd.OVER_BUDGET) if by_label else None
        return TargetAnswer(target, effect, budget=budget)
    return TargetAnswer(target, requested_job(request, target))


def requested_job(request: JobRequest, target: RequestTarget, *, refused: JobEnd = JobEnd.NONE) -> SubmitDeviceJob:
    """Return the effect that stores the job; a refused job ends at once, and its check run says why."""
    return SubmitDeviceJob(
        number=request.number,
        sha=request.sha,
        lab=target.lab,
        on=target.name,
        suites=target.settings.suites if request.suites is None else request.suites,
        tier=target.settings.tier,
        origin=request.origin.value,
        by_id=request.requested_by.id,
        by=request.requested_by.login,
        at=request.requested_at,
        approval_needed=request.approval_needed,
        refused=refused.value,
        purpose=request.purpose,
        tests=request.few_tests.tests,
        repeat=request.few_tests.repeat,
        base_sha=request.few_tests.base_sha,
    )


def day_of(moment: float) -> float:
    """Return when the day (UTC) of a moment began."""
    return datetime.fromtimestamp(moment, UTC).replace(hour=0, minute=0, second=0, microsecond=0).timestamp()
