"""Every sentence that people who run an agent read, or that the agent sends to the bot."""

from __future__ import annotations

# Settings
NOT_ENCRYPTED = "NIGHTJAR_URL must start with https://, because a token is sent to it (http:// only for this machine)"
NO_COMMAND = "name the command that tests, after --, as in: nightjar-lab agent --target adreno -- ./test.sh"
TOKEN_COMMAND_FAILED = "the command of --token-command ended with status {status}"  # noqa: S105
ALREADY_RUNS = "another agent works in {folder}; give each agent a folder of its own"

# What it does
CLAIMED = "job {job}: {repository} {sha} on {target}, attempt {attempt}, for {who}"
DONE = "job {job}: results of {suites} are uploaded"
ASK_AGAIN = "the bot cannot be asked now ({reason}); again in {seconds:.0f} s"
REFUSED = "the bot refuses: {reason}"
LEASE_LOST = "job {job}: the lease is lost; stopped"
STILL_RUNNING = "job {job}: no heartbeat could be sent ({reason}); the test goes on"
NO_SPACE = "only {free} MB are free in {folder}, and {least} are wanted; no job is claimed"
NOT_REPORTED = "job {job}: that it failed could not be reported ({reason}); its lease expires"

# Reasons that the bot is given
BAD_JOB = "the agent does not take the job: {reason}"
FETCH_FAILED = "the commit could not be fetched: {reason}"
OTHER_COMMIT = "another commit than the one that was asked for was fetched"
TOO_LONG = "the test took longer than {seconds:.0f} s"
NO_RESULTS = "the command left no result files (exit status {status})"
TOO_MANY_FILES = "the command left more than {most} result files"
TOO_LARGE = "the result file {name} has more than {most} bytes"
UPLOAD_FAILED = "the results could not be uploaded: {reason}"
NO_PERMISSION = (
    "the bot gives no permission to upload, and the agent has no --upload-command; set presigned_uploads in app.yaml"
)
DISK = "the lab's disk failed: {reason}"
STOPPED = "the agent was stopped"
UNEXPECTED = "the agent failed ({kind}); its log says more"
