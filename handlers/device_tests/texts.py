"""Every sentence about requested device tests, and the functions that build answers and check runs from them. Pure.

Text from labs is shown as code only: it comes from outside, and must not become Markdown.
"""

from __future__ import annotations

from collections.abc import Sequence

from bot.core.listing import counted
from bot.github.check_runs import IN_PROGRESS, NEUTRAL, QUEUED, CheckContent
from bot.github.text.markdown import code, truncate
from handlers.device_tests.model import MOST_ATTEMPTS, DeviceJob, DeviceJobState, JobEnd, ShownStep
from handlers.device_tests.queue import QueuePlace

# Help
TEST_SUMMARY = (
    "Ask hardware labs to test this pull request's head. Requests by people without write access need approval."
)
HELP_TARGETS = "Targets: {targets}."
HELP_NO_TARGETS = "No target accepts requests now: all are degraded or paused."
STATUS_SUMMARY = "List the device tests of this pull request's head."
CANCEL_SUMMARY = "Cancel all device tests of this pull request, including running ones."
APPROVE_SUMMARY = (
    "Approve the device tests that people without write access requested, on the head or on the commit you name."
)

# Answers
NO_TARGETS = "No target accepts requests in this repository."
TEST_CLOSED = "This pull request is closed, so no test was requested. Reopen it and ask again."
NAME_TARGETS = "Name the targets, as in {command}. Available: {targets}."
UNKNOWN_TARGET = "No lab has a target named {name}."
DID_YOU_MEAN = " Did you mean {names}?"
AVAILABLE = " Available: {names}."
NIGHTLY_ONLY = "{name} tests only nightly commits, so I didn't request a test."
WAITS_FOR_APPROVAL = (
    "{names}: waiting for approval, because a lab's device would run this code. Someone who may approve can review "
    "{sha} and comment {command}."
)
BUDGET_USED = "{name} has used its budget of {budget} (UTC). Ask again tomorrow."
ALREADY_OPEN = "{name} is already requested on {sha}."
ALREADY_WAITING = "{name} is already requested on {sha} and waits for approval. To approve, comment {command}."
NO_TESTS = "Nobody has requested device tests for {sha}."
STATUS = "Device tests on {sha}:"
STATUS_WAITING = "waiting for approval; to approve, comment {command}"
STATUS_QUEUED = "queued, {place}"
STATUS_RUNNING = "running for {time}, attempt {attempt}"
STATUS_DONE = "done; see its check run"
STATUS_ANSWERED = "done; see the answer in the comments"
STATUS_OF_FEW = "{test} {times}: {status}"
ONCE, TIMES = "once", "{count} times"
NOTHING_TO_CANCEL = "This pull request has no queued or running device test."
NOTHING_WAITS = "No device test is waiting for approval on {sha}."
APPROVING = "Approved on {sha}: {names}."

# Places and times
NEXT = "next in line"
BEFORE = ("test before it", "tests before it")
EXPECTED = "starts in about {time}"
UNITS = ((86_400, "day", "days"), (3600, "hour", "hours"), (60, "minute", "minutes"))

# Check runs
QUEUED_TITLE = "Queued: {place}"
QUEUED_SUMMARY = "The lab has not started this test yet."
RUNNING_TITLE = "Running, attempt {attempt} of {most}"
RUNNING_SUMMARY = "The lab is testing this commit. *Details* links to its log, if the lab has published one."
REQUESTED_BY = "Requested by {login}."
APPROVED_BY = "Approved by {login}."
LAB_SAYS = "The lab says: {note}"
ASK_AGAIN = "To ask for another test, comment {command}."
CONTACTS = "Contacts of the lab: {contacts}."
ADVISORY = "This check is advisory and never blocks a merge."
END_TITLES = {
    JobEnd.NONE: "Ended",
    JobEnd.NO_ANSWER: "The lab stopped responding",
    JobEnd.LAB_FAILED: "The lab could not run the test",
    JobEnd.NO_DEVICE: "No device was free",
    JobEnd.TOO_LONG: "The test took too long",
    JobEnd.TARGET_REMOVED: "The target no longer accepts requests",
    JobEnd.NOT_APPROVED: "Nobody approved the test",
    JobEnd.PUSHED: "Cancelled by a push",
    JobEnd.CLOSED: "Cancelled: the pull request was closed",
    JobEnd.BY_PERSON: "Cancelled",
    JobEnd.DEGRADED: "Not requested: the target is degraded",
    JobEnd.PAUSED: "Not tested: the target is paused",
    JobEnd.OVER_BUDGET: "Not requested: the budget is used up",
    JobEnd.UNABLE: "The lab's command cannot run two commits in turn",
}
ENDS = {
    JobEnd.NONE: "The test ended.",
    JobEnd.NO_ANSWER: "The lab claimed the test and then stopped responding, so there is no result.",
    JobEnd.LAB_FAILED: "The lab could not run the test, so there is no result.",
    JobEnd.NO_DEVICE: "No lab claimed the test within a day, so there is no result.",
    JobEnd.TOO_LONG: "The test took longer than the target's time limit.",
    JobEnd.TARGET_REMOVED: "`app.yaml` changed: the target no longer accepts requests.",
    JobEnd.NOT_APPROVED: "Nobody approved the test within a week.",
    JobEnd.PUSHED: "A push replaced this commit before the test started.",
    JobEnd.CLOSED: "The pull request was closed before the test started.",
    JobEnd.BY_PERSON: "Someone cancelled the test.",
    JobEnd.DEGRADED: "The label or title requested no test: the target accepts no requests while it is degraded.",
    JobEnd.PAUSED: "The target is paused, so no lab tests this commit.",
    JobEnd.OVER_BUDGET: "The label or title requested no test: today's budget (UTC) of the target is used up.",
    JobEnd.UNABLE: (
        "The lab's command cannot run two commits in turn. Once it can, the lab says so with `--can sides` "
        "(docs/labs-on-request.md)."
    ),
}

# The audit log
SUBMITTED = "requested {target} on {sha}: {state}"
WITH_REASON = "{text} ({reason})"
ALREADY_SUBMITTED = "{target} is already requested on {sha}: {state}"
CANCELLED_JOBS = "cancelled {jobs}: {end}"
APPROVED_JOBS = "{by} approved {sha}: {names}"
STEP_NOTED = "the check run of {job} is {step}"
WHY_PUSHED = "{targets} for {sha}"
WHY_NOTHING_REQUESTED = "this push requests no tests"
WHY_CLOSED = "the pull request is closed"
WHY_UNKNOWN_JOB = "job {job} no longer exists"
WHY_SHOWN = "the check run already shows this"
WHY_RESULTS = "results have arrived, and the check run shows them"
WHY_STEP_FAILED = "the check run could not be written"

# Errors
CONTENDED = "other processes changed the job during every attempt"
UNKNOWN_JOB = "this lab has no job {id}"
SWEEP_DONE = "{expired} expired, {announced} announced, {removed} removed"

MINUTE, HOUR, DAY = 60, 3600, 86_400
MOST_NOTE = 200
"""Characters of a lab's text that are shown."""


def time_text(seconds: float) -> str:
    """Write a length of time in the unit that fits, as in `40 minutes`."""
    for unit, singular, plural in UNITS:
        if seconds >= 2 * unit or unit == MINUTE:
            count = max(1, round(seconds / unit))
            return f"{count} {singular if count == 1 else plural}"
    raise AssertionError("the last unit fits everything")


def place_text(place: QueuePlace | None) -> str:
    """Say how many tests are before a job, and when its test is expected to begin."""
    if place is None or not place.jobs_before:
        return NEXT
    queue = counted(place.jobs_before, *BEFORE)
    return f"{queue}; {EXPECTED.format(time=time_text(place.seconds))}" if place.seconds >= MINUTE else queue


def status_row(job: DeviceJob, place: QueuePlace | None, moment: float, approve_command: str) -> str:
    """Return a line about a job for a list; `approve_command` approves it, and `moment` is the current time."""
    return f"- {code(job.about.full_name)}: {status_text(job, place, moment, approve_command)}"


def status_text(job: DeviceJob, place: QueuePlace | None, moment: float, approve_command: str) -> str:
    """Say in which state a job is; the parameters are those of `status_row`."""
    match job.state:
        case DeviceJobState.WAITING:
            status = STATUS_WAITING.format(command=approve_command)
        case DeviceJobState.QUEUED:
            status = STATUS_QUEUED.format(place=place_text(place))
        case DeviceJobState.LEASED:
            status = STATUS_RUNNING.format(time=time_text(moment - job.leased_at), attempt=job.attempt)
            status += f" ({code(truncate(job.note, MOST_NOTE))})" if job.note else ""
        case DeviceJobState.DONE:
            status = STATUS_ANSWERED if job.purpose else STATUS_DONE
        case _:
            status = ENDS[job.end].rstrip(".")
    if job.few_tests.tests:
        test = code(truncate(job.few_tests.tests[0], MOST_NOTE))
        return STATUS_OF_FEW.format(test=test, times=times(job.few_tests.repeat), status=status)
    return status


def times(count: int) -> str:
    """Return `once` or `20 times`."""
    return ONCE if count == 1 else TIMES.format(count=count)


def step_content(
    job: DeviceJob, place: QueuePlace | None, contacts: Sequence[str], test_command: str, notice: str = ""
) -> CheckContent:
    """Return what the check run of a job says; `test_command` requests another test.

    `notice` (Markdown) says why the target accepts fewer requests than usual, empty if it accepts all.
    """
    last = [*filter(None, [notice]), ADVISORY]
    people = REQUESTED_BY.format(login=code(job.requested_by.login))
    if job.approved_by.id:
        people = f"{people} {APPROVED_BY.format(login=code(job.approved_by.login))}"
    match job.to_show:
        case ShownStep.QUEUED:
            title, summary = QUEUED_TITLE.format(place=place_text(place)), QUEUED_SUMMARY
            return CheckContent("", title, "\n\n".join([people, summary, *last]), status=QUEUED)
        case ShownStep.RUNNING:
            title = RUNNING_TITLE.format(attempt=job.attempt, most=MOST_ATTEMPTS)
            lines = [people, RUNNING_SUMMARY, *_note(job), *last]
            return CheckContent("", title, "\n\n".join(lines), status=IN_PROGRESS)
        case _:
            lines = [ENDS[job.end], *_note(job), people, ASK_AGAIN.format(command=code(test_command))]
            if contacts and job.state is DeviceJobState.ENDED:
                lines.append(CONTACTS.format(contacts=", ".join(map(code, contacts))))
            return CheckContent(NEUTRAL, END_TITLES[job.end], "\n\n".join([*lines, *last]))


def _note(job: DeviceJob) -> list[str]:
    # The lab's text does not explain any other end.
    if not job.note or job.end not in (JobEnd.NONE, JobEnd.LAB_FAILED):
        return []
    return [LAB_SAYS.format(note=code(truncate(job.note, MOST_NOTE)))]
