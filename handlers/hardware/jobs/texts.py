"""Every sentence about tests on devices that people ask for."""

from __future__ import annotations

from handlers.hardware.jobs.model import JobEnd

# Help
TEST_SUMMARY = (
    "Ask hardware labs to test this pull request's head. Requests by people without write access need approval."
)
HELP_TARGETS = "Targets: {targets}."
HELP_NO_TARGETS = "No target takes requests now: all are degraded."
STATUS_SUMMARY = "List the tests on devices of this pull request's head."
CANCEL_SUMMARY = "Cancel all tests on devices of this pull request, also those that run."
APPROVE_SUMMARY = "Let hardware labs test the head, or the commit you name, for people without write access."

# Answers
NO_TARGETS = "No target takes requests in this repository."
TEST_CLOSED = "This pull request is closed, so nothing was done. Reopen it and ask again."
NAME_TARGETS = "Name the targets, as in {command}. Available: {targets}."
UNKNOWN_TARGET = "No lab has a target {name}."
DID_YOU_MEAN = " Did you mean {names}?"
AVAILABLE = " Available: {names}."
NIGHTLY_ONLY = "{name} tests nightly commits only, so I didn't request it."
WAITS_FOR_APPROVAL = (
    "{names}: waiting for approval, because a device runs this code. Somebody who may approve can review {sha} and "
    "comment {command}."
)
BUDGET_USED = "{name} has used its budget of {budget} (UTC). Ask again tomorrow."
ALREADY_OPEN = "{name} is requested already on {sha}."
NO_TESTS = "Nobody requested tests on devices for {sha}."
STATUS = "Tests on devices of {sha}:"
STATUS_WAITING = "waits for approval; comment {command}"
STATUS_QUEUED = "queued, {place}"
STATUS_RUNNING = "running for {time}, attempt {attempt}"
STATUS_DONE = "done; see its check run"
NOTHING_TO_CANCEL = "No test of this pull request was waiting or running."
NOTHING_WAITS = "No test waits for approval on {sha}."
APPROVING = "Approved on {sha}: {names}."

# Places and times
NEXT = "next in line"
ONE_BEFORE = "1 test before it"
MANY_BEFORE = "{count} tests before it"
EXPECTED = "starts in about {time}"
UNITS = ((86_400, "day", "days"), (3600, "hour", "hours"), (60, "minute", "minutes"))

# Check runs
QUEUED_TITLE = "Queued: {place}"
QUEUED_SUMMARY = "The lab has not started this test yet."
RUNNING_TITLE = "Running, attempt {attempt} of {most}"
RUNNING_SUMMARY = "The lab is testing this commit. *Details* lead to its log, if the lab has published one."
REQUESTED_BY = "Requested by {login}."
APPROVED_BY = "Approved by {login}."
LAB_SAYS = "The lab says: {note}"
ASK_AGAIN = "To ask for another test, comment {command}."
CONTACTS = "Contacts of the lab: {contacts}."
ADVISORY = "This check is advisory and never blocks a merge."
END_TITLES = {
    JobEnd.NONE: "Ended",
    JobEnd.NO_ANSWER: "The lab did not answer",
    JobEnd.LAB_FAILED: "The lab could not run the test",
    JobEnd.NO_DEVICE: "No device was free",
    JobEnd.TOO_LONG: "The test took too long",
    JobEnd.TARGET_REMOVED: "The target no longer takes requests",
    JobEnd.NOT_APPROVED: "Nobody approved the test",
    JobEnd.PUSHED: "Cancelled by a push",
    JobEnd.CLOSED: "Cancelled: the pull request was closed",
    JobEnd.BY_PERSON: "Cancelled",
    JobEnd.DEGRADED: "Not requested: the target is degraded",
    JobEnd.OVER_BUDGET: "Not requested: the budget is used up",
}
ENDS = {
    JobEnd.NONE: "The test ended.",
    JobEnd.NO_ANSWER: "The lab took the test, and then did not answer. This says nothing about the code.",
    JobEnd.LAB_FAILED: "The lab could not run the test. This says nothing about the code.",
    JobEnd.NO_DEVICE: "No lab took the test within a day. This says nothing about the code.",
    JobEnd.TOO_LONG: "The test took longer than the target's time limit.",
    JobEnd.TARGET_REMOVED: "`app.yaml` changed: the target no longer takes requests.",
    JobEnd.NOT_APPROVED: "Nobody approved the test within a week.",
    JobEnd.PUSHED: "A push replaced this commit before the test began.",
    JobEnd.CLOSED: "The pull request was closed before the test began.",
    JobEnd.BY_PERSON: "Somebody cancelled the test.",
    JobEnd.DEGRADED: "The label did not request a test, because the target takes no requests while it is degraded.",
    JobEnd.OVER_BUDGET: "The label did not request a test, because today's budget (UTC) of the target is used up.",
}

# The audit log
SUBMITTED = "requested {target} on {sha}: {state}"
ALREADY_SUBMITTED = "{target} is requested on {sha} already: {state}"
CANCELLED_JOBS = "cancelled {count} jobs: {end}"
APPROVED_JOBS = "{by} approved {sha}: {names}"
STEP_NOTED = "the check run of {job} is {step}"
WHY_PUSHED = "{count} targets for {sha}"
WHY_NOTHING_REQUESTED = "this push requests no tests"
WHY_CLOSED = "the pull request is closed"
WHY_UNKNOWN_JOB = "there is no job {job} any more"
WHY_SHOWN = "the check run says so already"
WHY_RESULTS = "there are results, which the check run shows"
WHY_STEP_FAILED = "the check run could not be written"

# Errors
CONTENDED = "other processes changed the job each time that we tried"
UNKNOWN_JOB = "there is no job {id} of this lab"
SWEEP_DONE = "{expired} expired, {announced} announced, {removed} removed"
