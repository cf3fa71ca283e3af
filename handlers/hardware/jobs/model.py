"""A job for a device: one target of a lab is to test one head of a pull request. Pure.

A job is a value, and each thing that can happen to it is a function in `transitions`. `store` saves it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum, StrEnum

from nightjar_formats.model import TargetKey

LEASE_SECONDS = 180.0
"""How long a lab may be silent before its job is handed out again. Agents send a heartbeat every minute."""
MOST_ATTEMPTS = 3
"""How often a job is handed out."""
QUEUE_SECONDS = 86_400.0
"""How long a job waits for a device before it ends without results."""
APPROVAL_SECONDS = 7 * 86_400.0
"""How long a job waits for an approval."""


class DeviceJobState(StrEnum):
    """Where a job is. The last three are final, except that results that arrive late make each of them `DONE`."""

    WAITING = "waiting"
    """Somebody must approve this commit first. No lab sees the job, and it has no check run."""
    QUEUED = "queued"
    """A lab may claim it."""
    LEASED = "leased"
    """A lab has it. Until `lease_expires_at` nobody else gets it."""
    DONE = "done"
    """Its results arrived."""
    ENDED = "ended"
    """It ended without results; `end` says why. Its check run is neutral."""
    CANCELLED = "cancelled"
    """It is no longer wanted; `end` says why."""


OPEN = frozenset({DeviceJobState.WAITING, DeviceJobState.QUEUED, DeviceJobState.LEASED})
"""The states of a job that has not ended."""


class JobEnd(StrEnum):
    """Why a job has no results."""

    NONE = ""
    NO_ANSWER = "no answer"
    """The lab claimed it, and its lease expired, as often as a job is handed out."""
    LAB_FAILED = "lab failed"
    """The lab reported failures of its own, as often as a job is handed out."""
    NO_DEVICE = "no device"
    """No lab claimed it in time."""
    TOO_LONG = "too long"
    """The test took longer than the target's `timeout`."""
    TARGET_REMOVED = "target removed"
    """app.yaml no longer has the target, or it no longer takes requests."""
    NOT_APPROVED = "not approved"
    """Nobody approved it in time."""
    PUSHED = "pushed"
    """The pull request has another head."""
    CLOSED = "closed"
    """The pull request was closed or merged."""
    BY_PERSON = "by person"
    """Somebody cancelled it."""
    DEGRADED = "degraded"
    """Somebody set the label of a target that takes no requests while it is degraded."""
    OVER_BUDGET = "over budget"
    """Somebody set the label of a target whose budget is used up."""


REFUSED_ENDS = frozenset({JobEnd.DEGRADED, JobEnd.OVER_BUDGET})
"""Ends of requests that were refused at once. A label cannot be answered, so the check run says why."""


class JobOrigin(StrEnum):
    """What asked for a job."""

    COMMAND = "command"
    LABEL = "label"
    PUSH = "push"
    """A push, to a target that tests every push, or one whose requests last (`sticky`)."""


class ShownStep(IntEnum):
    """How far a job's check run is. It is written at most once for each step, and never goes back."""

    NOTHING = 0
    QUEUED = 1
    RUNNING = 2
    ENDED = 3


@dataclass(frozen=True, slots=True)
class Someone:
    """Who asked for a job, or approved it. People are known by `id`; the login is what it was then."""

    id: int
    login: str


NOBODY = Someone(0, "")


@dataclass(frozen=True, slots=True)
class DeviceJob:
    """One target is to test one head of a pull request. Moments are seconds since 1970, 0.0 for never.

    `repository` is the name in app.yaml. `expires_at` is when something happens by itself if nobody does anything:
    `transitions.expire`. `attempt` counts from 1 once the job was handed out; each attempt has its own `run_id`.
    """

    id: str
    repository_id: int
    repository: str
    pull_request: int
    sha: str
    lab: str
    target: str
    suites: tuple[str, ...]
    tier: int
    origin: JobOrigin
    requested_by: Someone
    requested_at: float
    state: DeviceJobState
    expires_at: float
    approved_by: Someone = NOBODY
    approved_at: float = 0.0
    queued_at: float = 0.0
    attempt: int = 0
    slot: int = -1
    """Which of the target's devices it has, from 0; -1 for none. No two leased jobs of a target have the same one."""
    lease: str = ""
    """The digest of the lease of whoever has it now; empty if nobody does."""
    old_lease: str = ""
    """The digest of the last lease that was given back, so that a repeated report is no error."""
    lease_expires_at: float = 0.0
    leased_at: float = 0.0
    """When it was handed out last."""
    deadline: float = 0.0
    """When the present attempt must be over: heartbeats do not extend a lease beyond it."""
    run_id: str = ""
    """The run that this attempt is to upload."""
    arrived: tuple[str, ...] = ()
    """The suites whose results arrived."""
    log_url: str = ""
    note: str = ""
    """What the lab says about its progress, or why it failed. Data from outside, never Markdown."""
    end: JobEnd = JobEnd.NONE
    ended_at: float = 0.0
    shown: ShownStep = ShownStep.NOTHING
    """What the check run says, or is being made to say."""
    version: int = 0
    """Counts the writes; `store` replaces a job only if it has the version that was read."""

    @property
    def about(self) -> TargetKey:
        """The target of the lab."""
        return TargetKey(self.repository, self.lab, self.target)

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.state in OPEN

    @property
    def was_handed_out(self) -> bool:
        """Whether a lab has had it. Only such a job can have results."""
        return self.attempt > 0

    @property
    def to_show(self) -> ShownStep:
        """How far the check run should be.

        A job that waits for approval has none yet, and one that ended before it had one needs none, unless the request
        was refused. That of a push
        gets it when its test runs. A test runs once its lab sent a heartbeat, which usually has the link to the log. A
        queued job whose device is lost goes on saying that it runs, which saves a write. Once results arrived, they are
        what it says.
        """
        if self.state is DeviceJobState.WAITING or self.arrived:
            return self.shown
        if self.state in (DeviceJobState.QUEUED, DeviceJobState.LEASED):
            waits = ShownStep.NOTHING if self.origin is JobOrigin.PUSH else ShownStep.QUEUED
            return max(self.shown, ShownStep.RUNNING if self.is_alive else waits)
        return ShownStep.ENDED if self.shown or self.end in REFUSED_ENDS else ShownStep.NOTHING

    @property
    def is_alive(self) -> bool:
        """Whether the lab that has it sent a heartbeat."""
        first = min(self.leased_at + LEASE_SECONDS, self.deadline)
        return self.state is DeviceJobState.LEASED and bool(self.log_url or self.note or self.lease_expires_at > first)

    @property
    def has_all_suites(self) -> bool:
        """Whether results of all its suites arrived; of a job that names one suite or none, any results."""
        return bool(self.arrived) and (len(self.suites) < 2 or set(self.suites) <= set(self.arrived))


def run_id_of(job_id: str, attempt: int) -> str:
    """Return the name of the run of one attempt, unique in the bucket."""
    return f"{job_id}-{attempt}"
