"""A job for a device: one target of a lab must test one commit, usually the head of a pull request. Pure.

A job is a value, and each thing that can happen to it is a function in `transitions`. `store` saves it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import IntEnum, StrEnum

from nightjar_formats.model import TargetKey
from nightjar_formats.runs.few_tests import FEW_TESTS

LEASE_SECONDS = 180.0
"""Seconds without a heartbeat after which a job is handed out again. Agents send a heartbeat every minute."""
MOST_ATTEMPTS = 3
"""The most times that a job is handed out."""
QUEUE_SECONDS = 86_400.0
"""Seconds after which a job that waits for a device ends without results."""
MOST_TESTS = 100
"""The most tests that a job may name."""
MOST_REPEATS = 50
"""The most times that a job runs its tests at each commit."""
APPROVAL_SECONDS = 7 * 86_400.0
"""Seconds after which a job that waits for an approval ends."""


class DeviceJobState(StrEnum):
    """The state of a job. The last three are final, except that late results turn each of them into `DONE`."""

    WAITING = "waiting"
    """Somebody must approve this commit first. No lab sees the job, and it has no check run."""
    QUEUED = "queued"
    """A lab may claim it."""
    IDLE = "idle"
    """The bot requested it: a lab may claim it if no person's job is queued for the target."""
    LEASED = "leased"
    """A lab has it. Until `lease_expires_at`, no other caller gets it."""
    DONE = "done"
    """Its results arrived."""
    ENDED = "ended"
    """It ended without results; `end` says why. Its check run is neutral."""
    CANCELLED = "cancelled"
    """A person or a push cancelled it; `end` says why."""


OPEN = frozenset({DeviceJobState.WAITING, DeviceJobState.QUEUED, DeviceJobState.IDLE, DeviceJobState.LEASED})
"""The states of a job that has not ended."""


class JobEnd(StrEnum):
    """The reason why a job has no results."""

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
    """app.yaml no longer has the target, or it no longer accepts requests."""
    NOT_APPROVED = "not approved"
    """Nobody approved it in time."""
    PUSHED = "pushed"
    """The pull request has another head."""
    CLOSED = "closed"
    """The pull request was closed or merged."""
    BY_PERSON = "by person"
    """Somebody cancelled it."""
    DEGRADED = "degraded"
    """Somebody set the label of a target that accepts no requests while it is degraded."""
    OVER_BUDGET = "over budget"
    """Somebody set the label of a target whose budget is used up."""


REFUSED_ENDS = frozenset({JobEnd.DEGRADED, JobEnd.OVER_BUDGET})
"""Ends of requests that were refused at once. A label has no reply, so the check run says why."""


class JobOrigin(StrEnum):
    """The origin of a job."""

    COMMAND = "command"
    LABEL = "label"
    PUSH = "push"
    """A push, to a target that tests every push, or one whose requests last (`sticky`)."""
    BOT = "bot"
    """The bot itself, for a commit of a branch that labs test."""


class ShownStep(IntEnum):
    """The steps of a job's check run. It is written at most once for each step, and never goes back."""

    NOTHING = 0
    QUEUED = 1
    RUNNING = 2
    ENDED = 3


@dataclass(frozen=True, slots=True)
class Someone:
    """A person who requested or approved a job, identified by `id`; `login` is the login at that time."""

    id: int
    login: str


NOBODY = Someone(0, "")
"""The person of a job that the bot requested, and of an approval that was not needed."""


@dataclass(frozen=True, slots=True)
class FewTests:
    """The tests that a job names: their IDs, and how often each runs. None: the whole suite, once.

    With `base_sha`, an agent that can do so runs the tests at that commit as well, in turn with the job's own commit.
    """

    tests: tuple[str, ...] = ()
    repeat: int = 1
    base_sha: str = ""


WHOLE_SUITE = FewTests()


@dataclass(frozen=True, slots=True)
class DeviceJob:
    """A test of one commit on one target. Moments are seconds since 1970, 0.0 for never.

    `repository` is the name in app.yaml. `pull_request` is 0 if the commit is not tested as a head. `expires_at` is
    when the sweep changes the job: see `transitions.expire`. `attempt` counts from 1 when the job is handed out; each
    attempt has its own `run_id`.
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
    """The number of the target's device that runs it, from 0; -1 for none. Leased jobs of a target never share one."""
    lease: str = ""
    """The digest of the current lease; empty if there is none."""
    old_lease: str = ""
    """The digest of the last lease that was given back, so that a repeated report is no error."""
    lease_expires_at: float = 0.0
    leased_at: float = 0.0
    """The time of the last hand-out."""
    deadline: float = 0.0
    """The time at which the current attempt must end: heartbeats do not extend a lease beyond it."""
    run_id: str = ""
    """The run that this attempt is to upload."""
    arrived: tuple[str, ...] = ()
    """The suites whose results arrived."""
    log_url: str = ""
    note: str = ""
    """The lab's text about its progress, or about its failure. Data from outside, never Markdown."""
    purpose: str = ""
    """What a job for a few tests is for, as in `reproduce:…`; empty for the whole suite.

    One commit has at most one open job of a person for a target and a purpose.
    """
    few_tests: FewTests = WHOLE_SUITE
    outcome: str = ""
    """What a few tests did (`FewTestsOutcome`), as JSON; empty for none yet, and for the whole suite."""
    end: JobEnd = JobEnd.NONE
    ended_at: float = 0.0
    shown: ShownStep = ShownStep.NOTHING
    """The step that the check run shows, or that is being written."""
    version: int = 0
    """Counts the writes; `store` replaces a job only if it has the version that was read."""

    @property
    def about(self) -> TargetKey:
        """The target of the lab."""
        return TargetKey(self.repository, self.lab, self.target)

    @property
    def is_open(self) -> bool:
        """Whether the job has not ended."""
        return self.state in OPEN

    @property
    def is_bots(self) -> bool:
        """Whether the bot requested the job, so that it gives way to the jobs of people."""
        return self.requested_by.id == NOBODY.id

    @property
    def was_handed_out(self) -> bool:
        """Whether a lab had the job. Only such a job can have results."""
        return self.attempt > 0

    @property
    def to_show(self) -> ShownStep:
        """The step that the check run should show.

        A job that waits for approval has no check run yet. A job that ended before it had one needs none, unless the
        request was refused. The job of a push gets its check run when the test runs. A test runs once its lab has sent
        a heartbeat, which usually has the link to the log. If the device of a running job is lost, the check run still
        says that it runs, which saves a write. After results have arrived, the check run shows them.

        A job for a few tests has no check run. Its only step is its end, which is announced in the same way.
        """
        if self.purpose:
            return self.shown if self.is_open else ShownStep.ENDED
        if self.state is DeviceJobState.WAITING or self.arrived:
            return self.shown
        if self.state in (DeviceJobState.QUEUED, DeviceJobState.LEASED):
            waits = ShownStep.NOTHING if self.origin is JobOrigin.PUSH else ShownStep.QUEUED
            return max(self.shown, ShownStep.RUNNING if self.is_alive else waits)
        return ShownStep.ENDED if self.shown or self.end in REFUSED_ENDS else ShownStep.NOTHING

    @property
    def is_alive(self) -> bool:
        """Whether the lab of the current lease has sent a heartbeat."""
        # `hand_out` set this expiry, so a later one is from a heartbeat.
        first_expiry = min(self.leased_at + LEASE_SECONDS, self.deadline)
        return self.state is DeviceJobState.LEASED and bool(
            self.log_url or self.note or self.lease_expires_at > first_expiry
        )

    @property
    def has_all_suites(self) -> bool:
        """Whether results of all its suites have arrived; if it names one suite or none, any results count."""
        return bool(self.arrived) and (len(self.suites) < 2 or set(self.suites) <= set(self.arrived))


def few_tests_id(digest: str) -> str:
    """Return the ID of a job for a few tests. Its runs are recognized by their names, also when the job is deleted."""
    return f"{FEW_TESTS}{digest}"


def cut_tests(tests: Iterable[str]) -> tuple[str, ...]:
    """Return the tests that a job may name: each once, at most `MOST_TESTS`."""
    return tuple(dict.fromkeys(tests))[:MOST_TESTS]


def run_id_of(job_id: str, attempt: int) -> str:
    """Return the name of the run of one attempt, unique in the bucket."""
    return f"{job_id}-{attempt}"
