"""What people read about `@ci rerun` and `@ci approve ci`."""

from __future__ import annotations

RERUN_SUMMARY = (
    "Restart what failed on this pull request's head. `all` restarts every run; a name restarts the run of that name."
)
APPROVE_SUMMARY = (
    "Start the workflow runs that wait for a maintainer's approval, on the head or on the commit you name."
)

CLOSED = "This pull request is closed, so nothing was restarted. Reopen it and ask again."
HEAD_MOVED = (
    "The head moved from {old} to {new}, so nothing was restarted. CI starts on {new} by itself; ask again if "
    "something fails there."
)
NOT_STARTED_YET = "CI hasn't started on {sha} yet, so there is nothing to restart."
NOTHING_FAILED = "Nothing failed on {sha}. Finished: {names}. To restart everything, comment {command}."
NOTHING_FINISHED = "Nothing has finished on {sha} yet."
RESTARTING = "Restarting on {sha}:"
RESTARTED_RUN = "{run} ({provider}: {ended})"
FAILED_JOBS = "failed jobs of {run}"
ONE_JOB = "{job} of {run}"
NOT_BEGUN = "not started on this commit"
ABORTED = "aborted"
STATUS_PENDING = "{ended}, but its commit status is still pending"
STILL_RUNNING = "Still running, so left alone: {names}."
NO_STATUS = "No status on {sha} yet, so left alone: {names}. If CI missed the push, start one by name: {command}."
WAITS_FOR_APPROVAL = "Waiting for approval: {names}. Someone with write access can start them with {command}."
UNKNOWN_NAME = "Nothing on {sha} is named {name}."
NOT_REPORTED = (
    " I can start a check that hasn't reported yet only if its Jenkins job is in `rerun: jenkins: jobs:` in "
    "`app.yaml`. A workflow of GitHub Actions starts with the next push."
)
DID_YOU_MEAN = " Did you mean {names}?"
AVAILABLE = " Available: {names}."
MORE_NOT_RESTARTED = "I can't restart {count} more."

APPROVE_CLOSED = "This pull request is closed, so nothing was approved."
APPROVING = "Approving on {sha}: {names}."
NOTHING_WAITS = "No workflow run of this pull request waits for approval on {sha}."
