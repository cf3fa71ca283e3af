"""Every sentence about the bot and the bucket that people read, and what the agent says, also to the bot."""

from __future__ import annotations

# Settings
NOT_ENCRYPTED = "NIGHTJAR_URL must start with https://, because a token is sent to it (http:// only for this machine)"
NO_COMMAND = "name the test command after --, as in: nightjar-lab agent --target adreno -- ./test.sh"
EMPTY_COMMAND = "{option} names no command"
BAD_COMMAND = "the command of {option} cannot be split into words: {reason}"
TOKEN_COMMAND_FAILED = "the command of --token-command ended with status {status}"  # noqa: S105
TOKEN_COMMAND_NOT_STARTED = "could not run the command of --token-command ({reason}): {command}"  # noqa: S105
NO_ANSWER_WITHIN = "no answer within {seconds:g} s"
TOKEN_COMMAND_EMPTY = "the command of --token-command printed no token"  # noqa: S105
NO_GIT = "git is not on PATH; install it, because the agent fetches commits with it"
BAD_FOLDER = "cannot use the folder {folder} ({reason}); name another one with --folder"
JOBS_IS_LINK = (
    "{folder} is a link, and a test may have made it to write elsewhere; remove it, and use --folder for another disk"
)
ALREADY_RUNS = "another agent uses {folder}; give each agent a folder of its own"

# Answers that are not the bot's
NOT_THE_BOT = "the answer is not JSON; is this the address of the bot?"
REDIRECTED = "the address redirects to {to} ({status}), and nightjar-lab follows no redirects; correct NIGHTJAR_URL"

# Files that a command wrote, and why some are not uploaded
LEFT_OUT = "{path} is not uploaded: {reason}"
MORE_LEFT_OUT = "not uploaded either: {files}"
IS_LINK = "it is a link; write the file itself"
HAS_LINKS = "it has a second name (a hard link); write a copy"
NOT_REGULAR = "it is not a regular file"
IS_EMPTY = "it is empty"
IS_HIDDEN = "its name begins with a dot"
IS_MANIFEST = "only nightjar-lab writes manifest.json"
TOO_DEEP = "it is below {most} folders"
RESULTS_UNREADABLE = (
    "{folder}, the folder NIGHTJAR_RESULTS, cannot be read: {reason}; the command replaced or removed it"
)
NOT_PACKED = (
    "the run has {count} reports, more than the {most} files that a run may have, even after JUnit reports are joined; "
    "let the command write fewer files, or run it in shards (--shard). The reports stay in {folder}"
)

ARTIFACTS_LEFT_OUT = "NIGHTJAR_FILES has {files} more than the {most} that a run may have; they are not uploaded"

# What it does
WAITS_FOR_JOBS = "waiting for jobs for {targets}, asking the bot at {url}"
CLAIMED = "job {job}: {repository} {sha} on {target}, attempt {attempt}, for {who}"
DONE = "job {job}: results of {suites} are uploaded"
NOT_ASKED = "could not ask the bot at {url} for a job: {reason}"
AGAIN = "{reason}; trying again in {seconds:.0f} s"
LAST_OUTPUT = "job {job}: the last lines of the command's output:\n{lines}"
PAUSES = "no results were uploaded; the agent claims the next job in {seconds:.0f} s"
LEASE_LOST = "job {job}: the lease is lost; the test was stopped"
FIRST_RUNS = "the first run of each commit, which builds it and does not count"
BLOCKS_SO_FAR = "block {count} of {most} at most"
TOO_FEW_BLOCKS = "{blocks}; intervals need {least}"
MEASURED_NAME = "{name} of {test}"
WIDEST_SO_FAR = (
    "{blocks}: {name} {share} % ({low} to {high}) so far; the widest interval is ±{width} %, enough is ±{least} %"
)
STILL_RUNNING = "job {job}: could not send a heartbeat ({reason}); the test goes on"
NO_SPACE = "only {free} MB are free in {folder}, less than the {least} MB of --least-free; no job is claimed"
NOT_REPORTED = "job {job}: could not report its failure ({reason}); its lease will expire"

# Reasons that the bot is given
BAD_JOB = "the agent refused the job: {reason}"
FETCH_FAILED = "could not fetch the commit: {reason}"
OTHER_COMMIT = "git fetched another commit than the requested one"
TOO_MANY_TO_CHECK_OUT = "the commit has more than {most} files and folders"
TOO_LARGE_TO_CHECK_OUT = (
    "its files take more than {most} MiB, which is more than a checkout may have, more than the disk has free, or far "
    "more than git fetched for them"
)
TOO_DEEP_TO_CHECK_OUT = "the path of one of its files is too long"
TOO_LONG = "the test took longer than {seconds:.0f} s"
NO_RESULTS = "the command left no result files (exit status {status})"
TOO_MANY_FILES = "the command left more than {most} result files"
TOO_LARGE = "the result file {name} has more than {most} bytes"
TOO_LARGE_TOGETHER = "the result files have more than {most} bytes together"
RESULT_CHANGED = "the result file {name} changed after the test had ended"
FOLDER_REPLACED = "the test replaced the agent's folder {folder}"
UPLOAD_FAILED = "could not upload the results: {reason}"
BAD_MANIFEST = "the bot would refuse the manifest that the agent's settings lead to: {reason}"
DISK = "the lab's disk failed: {reason}"
DISK_WAS_FULL = "the lab's disk was full during the test (exit status {status}), so its results are not uploaded"
STOPPED = "the agent was stopped"
UNEXPECTED = "the agent failed ({kind}); see its log"

UNREADABLE_RUN = "a report of the {side} cannot be read: {reason}"
NO_BASE_TO_COMPARE = "a benchmark without a base commit"

# The bucket
NO_BOTO3 = "boto3 is not installed, and uploads to a bucket need it: pip install boto3"
BUCKET_AWAY = "could not reach bucket {bucket} ({reason}); check the network and AWS_ENDPOINT_URL, then try again"
NO_BUCKET = (
    "bucket {bucket} does not exist at the account or endpoint that the AWS_* variables name; correct NIGHTJAR_BUCKET "
    "or AWS_ENDPOINT_URL"
)
BAD_BUCKET = "{bucket} cannot be the name of a bucket; correct NIGHTJAR_BUCKET"
BAD_CREDENTIALS = (
    "bucket {bucket}: AWS does not accept these credentials ({reason}); renew AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, or log in to the role again"
)
NO_CREDENTIALS = (
    "no AWS credentials were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or give this machine a role"
)
HALF_A_KEY = "{missing} is not set, but {given} is; set both or neither"
NO_REGION = "AWS_DEFAULT_REGION is not set; set it to the region of the bucket {bucket}, such as us-west-2"
NO_PROFILE = "AWS_PROFILE names a profile that none of AWS's configuration files has; correct it"
BAD_ENDPOINT = "AWS_ENDPOINT_URL is not a web address; correct it, as in https://s3.example.org"
OTHER_REGION = "bucket {bucket} is in another region; set AWS_DEFAULT_REGION to that region"
WRONG_CLOCK = "bucket {bucket}: AWS does not accept the signature, because this machine's clock is wrong; correct it"
FILE_CHANGED = "a file changed during the upload to {bucket}; upload again when nothing writes to it"
DENIED = (
    "bucket {bucket}: {action} is denied to these credentials; ask the maintainers (docs/hardware-results.md has the "
    "policies)"
)
DENIED_UPLOAD = (
    "bucket {bucket}: {action} is denied to these credentials; correct NIGHTJAR_LAB, NIGHTJAR_REPOSITORY and "
    "NIGHTJAR_BUCKET, or ask the maintainers for the policy (docs/hardware-results.md; Ceph and other stores need one "
    "of their own)"
)
DENIED_KEY = (
    "bucket {bucket}: {action} is denied to these credentials: the bucket is encrypted with a key of AWS KMS; ask the "
    "maintainers to allow {action} on that key"
)
NO_CONDITIONAL_WRITES = (
    "bucket {bucket}: this store lacks conditional writes (If-None-Match: *), without which results could be "
    "overwritten; ask the maintainers to update it, or set AWS_ENDPOINT_URL and NIGHTJAR_BUCKET to a store that has "
    "them (docs/hardware-results.md)"
)
NOT_IMPLEMENTED = "bucket {bucket}: this store does not implement {action}; set AWS_ENDPOINT_URL to a store that does"
BUCKET_REFUSED = "bucket {bucket}: {action} was refused ({reason}); correct the AWS_* variables"
NO_OBJECT = "{key} is not in the bucket {bucket}, or these credentials may not read it"
OTHER_CONTENT = (
    "{key} is already in the bucket with other content, and nothing is overwritten; upload under another run ID"
)
UNKNOWN_CONTENT = (
    "{key} is already in the bucket, and these credentials may not read it to compare; unless you have just uploaded "
    "it, upload under another run ID"
)

# The nightly commit
NO_NIGHTLY_BRANCH = (
    "{repository} has no nightly commit yet; ask the maintainers when the branch will move for the first time"
)
NO_NIGHTLY = (
    "the bot has no nightly branch for {repository} ({reason}); correct NIGHTJAR_REPOSITORY, set NIGHTJAR_TOKEN for a "
    "private repository, or ask the maintainers for nightly: in app.yaml"
)
NO_NIGHTLY_FILE = (
    "{reason}; correct NIGHTJAR_REPOSITORY, NIGHTJAR_BUCKET and NIGHTJAR_PREFIX, or ask the maintainers for nightly: "
    "in app.yaml"
)
BAD_NIGHTLY = "{place} does not name a commit; is this the right address?"
NO_NEW_NIGHTLY = "no new nightly commit within {seconds:g} s; the last one is {sha}"
BOT_REFUSES = "the bot at {url} refuses: {reason}"
BOT_AWAY = "could not reach the bot at {url} ({reason}); check NIGHTJAR_URL and the network, then try again"

# What the bot says about a run
NOT_ADMITTED = "the bot would refuse the results: {reason}"
UNKNOWN_TO_BOT = "cannot upload for {repository}: {reason}; nothing was uploaded"
NOT_STORED = "the bot did not store the run ({state}): {reason}"
NOT_READ = "the bot has not stored or refused the run after {seconds:g} s; ask later: {url}"
CANNOT_ASK = "uploaded, but we could not ask the bot whether it accepts the run: {reason}; ask later: {url}"
UNREADABLE_ANSWER = "its answer is not a list of runs"

# Runs of a command
RUN_UNREADABLE = "{folder}/run.json cannot be read ({kind}); upload its reports with nightjar-lab upload, and delete it"

# What a check of the set-up finds
IS_SET = "is set"
SETTING_MISSING = "a setting that it needs is missing"
NEEDED_REPOSITORY = "is not set; set it to the repository that you test, as in octocat/compiler"
NEEDED_LAB = "is not set; set it to the lab's name in app.yaml"
NEEDED_BUCKET = (
    "is not set; set NIGHTJAR_URL and NIGHTJAR_LAB_TOKEN to upload through the bot, or set it to the bucket that the "
    "maintainers named"
)
THROUGH_BOT = "is not set: uploads go through the bot"
USEFUL_URL = "is not set; without the bot's address, nothing verifies uploads; ask the maintainers for it"
USEFUL_TOKEN = "is not set; requested tests (nightjar-lab agent) and uploads without a bucket need it"  # noqa: S105
NEEDS_TOKEN = "we need a token to check them; set NIGHTJAR_LAB_TOKEN"  # noqa: S105
NO_URL = "NIGHTJAR_URL is not set"
DISK_FREE = "{free:,} MB are free in {folder}"
DISK_FULL = "only {free:,} MB are free in {folder}; free at least {least:,} MB"
NO_ZSTD = "cannot be used ({reason}); reinstall it: pip install --force-reinstall backports.zstd"
WORKS = "works"
CLOCK_GOOD = "within {seconds:.0f} s of the bot's"
CLOCK_WRONG = "differs by {seconds:.0f} s from the bot's; synchronize it, or S3 refuses uploads"
REPOSITORY_KNOWN = "the bot accepts results for {repository}"
UNKNOWN_REPOSITORY = (
    "the bot accepts no results for {repository} ({reason}); correct NIGHTJAR_REPOSITORY, or set NIGHTJAR_TOKEN for a "
    "private one"
)
LAB_KNOWN = "app.yaml has the lab {lab}"
UNKNOWN_LAB = "app.yaml has no lab {lab} for {repository}; correct NIGHTJAR_LAB, or ask the maintainers to add it"
TOKEN_VALID = "valid for {lab}"  # noqa: S105
TOKEN_REFUSED = (
    "the bot does not accept NIGHTJAR_LAB_TOKEN for {lab} ({reason}); ask the operator for a new one: nightjar lab "  # noqa: S105
    "token create {lab}"
)
TARGETS_KNOWN = "app.yaml has {targets}"
COMMIT_ADMITTED = "the bot accepts runs of {targets} for {sha}"
OLD_BOT = "not checked: this bot cannot say before a run whether it accepts it"
NO_TARGET_GIVEN = "none given; name them with --target to check them"
CREDENTIALS_FOUND = "found AWS credentials"
MAY_WRITE = "these credentials may upload to {bucket}; nothing was stored"
PROBE_LEFT = "these credentials may upload to {bucket}; the store keeps the probe {key}, which the bot ignores"

# The summary of a CI job
SUMMARY_TITLE = "Tests of this job"
RAN = "{ran} ran and {skipped} did not: {statuses}."
NOTHING_RAN = "The reports have no tests."
REPORT_NOT_READ = "A report could not be read: {problem}"
FAILED_TESTS = "{tests} failed:"
MORE = "{more:,} more"
NO_REASON = "no reason given"
SKIPPED_BY = {
    "LEVEL": "{tests} skipped by level",
    "DEVICE": "{tests} skipped because a device is missing",
    "TARGET": "{tests} skipped by target",
    "QUARANTINE": "{tests} skipped by quarantine",
    "OTHER": "{tests} skipped for other reasons",
}
LEVEL_SWITCH = "To run them: @ci run slow tests or @ci run level nightly on the pull request; locally, NIGHTJAR_LEVEL."
DEVICE_SWITCH = "To run them: connect the device, or comment @ci test on TARGET on the pull request."
TARGET_SWITCH = "To run them: NIGHTJAR_TEST_TARGETS, and a build with the target."
QUARANTINE_SWITCH = "To run them: remove their item of `quarantine`."
OTHER_SWITCH = "The tests decide this by themselves."
SUMMARY_WRITTEN = "wrote {path}"
SUMMARY_NOT_WRITTEN = "cannot write {path}: {problem}"
NO_SUMMARY_PLACE = "no CI was recognised; name the file with --output FILE"
