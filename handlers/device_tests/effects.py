"""Changes to jobs for devices, each a statement on the engine's database, and the announcement of their check runs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nightjar_formats.model import TargetKey, escaped_target

from bot.core.events import Repository, check_lock, pull_lock
from bot.core.listing import counted
from bot.engine.internal import Announce, InternalEvent, announce
from bot.github.access import NO_PERMISSIONS, WritePermissions
from bot.plan.effect import Applied, EffectContext
from bot.results.service import RESULTS
from handlers.device_tests import texts
from handlers.device_tests.model import (
    DeviceJob,
    DeviceJobState,
    FewTests,
    JobEnd,
    JobOrigin,
    ShownStep,
    Someone,
    few_tests_id,
)
from handlers.device_tests.store import JOBS, job_id_of


@dataclass(frozen=True, slots=True)
class DeviceCheck:
    """The check run of a job must be written for a step. `time` distinguishes later tries; empty for the first."""

    lab: str
    target: str
    job: str
    step: int
    time: str = ""


def _guid(_: int, check: DeviceCheck) -> str:
    guid = f"device-job:{check.job}:{check.step}"
    return f"{guid}:{check.time}" if check.time else guid


def _lock(repository: int, check: DeviceCheck) -> str:
    # Everything that writes this check run has this lock; results of the target write it too.
    return check_lock(repository, TargetKey("", check.lab, check.target).check_name)


@dataclass(frozen=True, slots=True)
class FewTestsEnded:
    """A job for a few tests has ended, with or without an outcome; `JobStore.find` has it.

    `purpose` says whose it is. `time` distinguishes later tries; empty for the first.
    """

    lab: str
    target: str
    job: str
    purpose: str
    pull_request: int
    time: str = ""


def _few_tests_guid(_: int, ended: FewTestsEnded) -> str:
    guid = f"few-tests:{ended.job}"
    return f"{guid}:{ended.time}" if ended.time else guid


def _few_tests_lock(repository: int, ended: FewTestsEnded) -> str:
    # What answers a request on a pull request writes there; other purposes order their own jobs.
    if ended.pull_request:
        return pull_lock(repository, ended.pull_request)
    return f"few-tests:{repository}:{ended.purpose}"


FEW_TESTS_ENDED = InternalEvent(
    "nightjar.few-tests-ended",
    FewTestsEnded,
    guid=_few_tests_guid,
    lock=_few_tests_lock,
    number=lambda ended: ended.pull_request or None,
)
"""Handled by the feature that the purpose names. It must plan `NoteShownStep`, or the event is announced again."""

DEVICE_CHECK = InternalEvent("nightjar.device-job", DeviceCheck, guid=_guid, lock=_lock)


async def announce_step(accept: Announce, job: DeviceJob, time: str = "") -> bool:
    """Announce that the check run of a job must be written, if it is outdated; return whether that is new.

    A job for a few tests has no check run: its end is announced.
    """
    if job.shown >= job.to_show:
        return False
    repository = Repository(job.repository_id, job.repository, None)
    if job.purpose:
        return await announce(accept, FEW_TESTS_ENDED, repository, _ended_event(job, time))
    check = DeviceCheck(job.lab, job.target, job.id, int(job.to_show), time)
    return await announce(accept, DEVICE_CHECK, repository, check)


def _ended_event(job: DeviceJob, time: str = "") -> FewTestsEnded:
    return FewTestsEnded(job.lab, job.target, job.id, job.purpose, job.pull_request, time)


def step_guid(job: DeviceJob) -> str:
    """Return the GUID under which the step of a job is announced first."""
    if job.purpose:
        return _few_tests_guid(job.repository_id, _ended_event(job))
    return _guid(job.repository_id, DeviceCheck(job.lab, job.target, job.id, int(job.to_show)))


def step_guids(job: DeviceJob) -> list[str]:
    """Return the GUIDs under which the steps of a job are announced first."""
    if job.purpose:
        return [step_guid(job)]
    return [_guid(job.repository_id, DeviceCheck(job.lab, job.target, job.id, int(step))) for step in ShownStep if step]


@dataclass(frozen=True, slots=True)
class SubmitDeviceJob:
    """Ask a lab to test a head on a target (`on`). `at` is the time of the request, in seconds since 1970.

    Nothing new happens if the head has an open job for the target and purpose. `refused` is the `JobEnd` of a request
    that ends at once, empty for any other. A job with a `purpose` runs only `tests`, each `repeat` times, and at
    `base_sha` too unless that is empty.
    """

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    number: int
    sha: str
    lab: str
    on: str
    suites: tuple[str, ...]
    tier: int
    origin: str
    by_id: int
    by: str
    at: float
    approval_needed: bool
    refused: str = ""
    purpose: str = ""
    tests: tuple[str, ...] = ()
    repeat: int = 1
    base_sha: str = ""
    precision: float = 0.0
    seconds: float = 0.0
    """This and `precision` are for benchmarks, as in `FewTests`."""

    @property
    def effect_key(self) -> str:
        """The pull request and the lab's target, and the purpose if there is one."""
        target = submit_target(self.number, self.lab, self.on)
        return f"{target}:{self.purpose}" if self.purpose else target

    async def apply(self, context: EffectContext) -> Applied:
        """Store the job, once for each plan."""
        target = context.part(RESULTS).canonical(TargetKey(context.repository.full_name, self.lab, self.on))
        # The ID is derived from the ID of the plan, so a plan that is repeated after a crash finds its job.
        job_id = job_id_of(context.intent, filter(None, (target.full_name, self.sha, self.purpose)))
        job = DeviceJob(
            id=few_tests_id(job_id) if self.purpose else job_id,
            repository_id=context.repository.id,
            repository=target.repository,
            pull_request=self.number,
            sha=self.sha,
            lab=self.lab,
            target=self.on,
            suites=self.suites,
            tier=self.tier,
            origin=JobOrigin(self.origin),
            requested_by=Someone(self.by_id, self.by),
            requested_at=self.at,
            state=DeviceJobState.WAITING,
            expires_at=0.0,
            purpose=self.purpose,
            few_tests=FewTests(self.tests, self.repeat, self.base_sha, self.precision, self.seconds),
        )
        stored, new = await context.part(JOBS).submit(
            job, approval_needed=self.approval_needed, refused=JobEnd(self.refused)
        )
        await announce_step(context.announce, stored)
        outcome = texts.SUBMITTED if new else texts.ALREADY_SUBMITTED
        return Applied(outcome.format(target=target.full_name, sha=self.sha[:7], state=stored.state), changed=new)


@dataclass(frozen=True, slots=True)
class CancelDeviceJobs:
    """End the jobs of a pull request that are no longer wanted; `end` is a `JobEnd`.

    `other_than` is the head whose jobs stay, empty for none. `only` limits the effect to one target, as LAB/TARGET;
    empty for all. Without `also_running`, tests that a lab has already continue; with `but_commands`, so do tests that
    somebody requested with a command.
    """

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    number: int
    end: str
    also_running: bool = False
    other_than: str = ""
    only: str = ""
    but_commands: bool = False

    @property
    def effect_key(self) -> str:
        """The pull request, and the target if there is only one."""
        return f"device-jobs:{self.number}:cancel:{self.only}"

    async def apply(self, context: EffectContext) -> Applied:
        """Cancel the open jobs to which this applies."""
        store, ended = context.part(JOBS), 0
        for job in await store.of_pull(context.repository.id, self.number):
            if job.is_open and self._applies_to(job):
                cancelled = await store.cancel(job, JobEnd(self.end), also_running=self.also_running)
                ended += not cancelled.is_open
                await announce_step(context.announce, cancelled)
        return Applied(texts.CANCELLED_JOBS.format(jobs=counted(ended, "job"), end=self.end), changed=bool(ended))

    def _applies_to(self, job: DeviceJob) -> bool:
        if self.but_commands and job.origin is JobOrigin.COMMAND:
            return False
        return job.sha != self.other_than and self.only in ("", job.about.full_name)


@dataclass(frozen=True, slots=True)
class ApproveDeviceJobs:
    """Let labs see the jobs of exactly this commit that wait for approval."""

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    number: int
    sha: str
    by_id: int
    by: str

    @property
    def effect_key(self) -> str:
        """The pull request and the commit."""
        return f"device-jobs:{self.number}:approve:{self.sha}"

    async def apply(self, context: EffectContext) -> Applied:
        """Approve the waiting jobs."""
        store, approved = context.part(JOBS), list[str]()
        for job in await store.of_pull(context.repository.id, self.number):
            if job.state is DeviceJobState.WAITING and job.sha == self.sha:
                queued = await store.approve(job, self.sha, Someone(self.by_id, self.by))
                await announce_step(context.announce, queued)
                approved.append(job.about.full_name)
        names = ", ".join(approved)
        return Applied(texts.APPROVED_JOBS.format(sha=self.sha, by=self.by, names=names), changed=bool(approved))


@dataclass(frozen=True, slots=True)
class NoteShownStep:
    """Note that the check run of a job was written for a step."""

    permissions: ClassVar[WritePermissions] = NO_PERMISSIONS

    lab: str
    job: str
    step: int

    @property
    def effect_key(self) -> str:
        """The job."""
        return f"device-job:{self.job}:shown"

    async def apply(self, context: EffectContext) -> Applied:
        """Note the step, and announce the step that the job has reached meanwhile."""
        job = await context.part(JOBS).show(self.lab, self.job, ShownStep(self.step))
        await announce_step(context.announce, job)
        return Applied(texts.STEP_NOTED.format(job=self.job, step=ShownStep(self.step).name.lower()))


def submit_target(number: int, lab: str, target: str) -> str:
    """Return the key of the effect that requests a test: a later command of the same comment may call it off."""
    return f"device-job:{number}:{lab}/{escaped_target(target)}"
