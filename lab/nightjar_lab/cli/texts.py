"""Every sentence of the commands that people read, except the help of options."""

from __future__ import annotations

NEEDS_UNIX = (
    "{command} needs Linux or macOS, because Python has no module {module} here; on Windows, run it in WSL: "
    "https://learn.microsoft.com/windows/wsl/"
)

# Values
INVALID_VALUE = "{value} is not {words}"
REPOSITORY_FORM = "OWNER/NAME, as in octocat/compiler"
SEGMENT_FORM = "a name of letters, digits, . _ and -, as in example-lab"
TARGET_FORM = "a name of letters, digits, . _ - @ and :, as in hexagon-v73 or rpi-4@lab:1"
SHA_FORM = "the full SHA of a commit, 40 hexadecimal digits in lower case; git rev-parse HEAD prints it"
RUN_ID_FORM = "a name of up to 100 letters, digits, . _ and -"
SUITE_FORM = "up to 100 letters, digits, spaces and . _ + / -"
SHARD_FORM = "the shard's number and how many there are, as in 1/4"
PACKAGE_FORM = (
    "a wheel's path, a wheel's https address with #sha256=DIGEST, or git+https://git.example.org/nightjar@SHA"
    "#subdirectory=lab with the full SHA of a commit; nightjar-lab is on no package index, where anybody could "
    "register the name and run code in your lab"
)
PAIR_FORM = "KEY=VALUE"
VARIABLE_FORM = "the name of a variable, as in MODEL_FOLDER"

# Settings
MISSING = "{named} is not set; {what}"
OR_VARIABLE = "{option} ({variable})"
WHAT_REPOSITORY = "name the repository that you test, as in octocat/compiler"
WHAT_LAB = "give the lab's name in app.yaml"
WHAT_BUCKET = "give the bucket that the maintainers named"
WHAT_UPLOAD_URL = "give the bot's address to upload through the bot, or the bucket of your lab with --bucket"
WHAT_URL = "give the bot's address, as in https://ci.example.org"
WHAT_TARGET = "name a target with a device here"
WHAT_TOKEN = "give the lab's token, or use --token-command"  # noqa: S105
WHAT_SOURCE = "give the bot's address, or the bucket that has nightly.json"

# nightly
STATE_UNREADABLE = "{file} cannot be read: {reason}; name another file with --state"
STATE_NOT_WRITTEN = "{file} cannot be written: {reason}; name another file with --state, or use --after"

# check
GOOD = "OK to upload"
BAD = "The bot would refuse these files. Fix them before you upload."
UNREADABLE = "Some files cannot be read here. Correct the paths or permissions, and check again."
REFUSED_FILE = "{name}: refused: {problem}"
REFUSED_RUN = "refused: {problem}"
UNREADABLE_FILE, UNREADABLE_RUN = "{name}: {problem}", "{problem}"
ARTIFACT = "{name}: {type}, for people to read"
TOGETHER = "all files: {counts}"
MEASUREMENTS = "  measurements: {measurements}"
MEASUREMENT = "{name}{unit} of {tests}"
ADVICE = "advice: {advice}"
ADVICE_FOR = "advice: {names}: {advice}"
AND_MORE = " and {more} more"
NO_TESTS = "no tests"
ERRORED = " (errored: {troubles})"

# ids
NO_IDS = "there is no test in {paths}; name reports, or what pytest can collect"
NOT_COLLECTED = "pytest could not collect the tests (exit status {status}); its output is above"

# upload
NOTHING_SENT = "nothing was uploaded; fix the files, or upload them unchanged with --no-check"
NO_FILE_MATCHES = "--file {pattern} matches no file; correct it, or leave it out"
RUN = "run {run_id}"
FILE = "{name} ({bytes:,} bytes): {state}"
UPLOADED, ALREADY_UPLOADED = "uploaded", "already uploaded"
NOT_VERIFIED = """\
Uploaded, but not verified: without --url (NIGHTJAR_URL) we cannot ask the bot whether it accepts this run.
If it does, the check run hardware/{lab}/{target} appears on {sha} within about a minute.
If it does not, GET /api/v1/repos/{repository}/results/runs?sha={sha} on the bot says why."""
STORED = "The bot stored the run: {page}"
CHECK_RUN_PENDING = "Waiting for the check run hardware/{lab}/{target}; the bot first waits for more suites …"
CHECK_RUN = "Check run hardware/{lab}/{target}: {address}"
CHECK_RUN_LATER = "The check run hardware/{lab}/{target} is not written yet; it will appear on {sha}."
WHAT_WAIT_URL = "--wait needs the bot's address to ask it; give it, or omit --wait"

# run
NO_TEST_COMMAND = "name the test command after --, as in: nightjar-lab run --target adreno -- pytest tests"
NOT_A_COMMAND = "there is no command {command} here; correct its name, or PATH"
RESUME_RUNS_NOTHING = "--resume uploads what earlier runs could not, and runs nothing; omit the command, or --resume"
NO_CHECKOUT = "this folder is not a Git checkout; run this in a checkout of the commit, or give --sha"
FOLDER_UNUSABLE = "{folder} cannot be written: {reason}; name another folder with --folder"
RUN_NOT_STORED = (
    "{folder} cannot be written: {reason}; correct this, then upload what the command wrote with: "
    "nightjar-lab run --resume --folder {parent}"
)
RUN_ID_IN_USE = "another process uses the run ID {run_id} in this folder; give another --run-id"
INTERRUPTED = "interrupted; the command has {seconds:g} s to write its report, which is then uploaded"
STALE_REPORT = "{path} is older than this run and is not uploaded"
LINKED_REPORT = "{path} is a link and is not uploaded; name the file itself"
NO_MATCH = "--report {pattern} matches no report of this run; correct the pattern, or what the command writes"
BAD_PATTERN = "--report {pattern} is no pattern: {reason}"
NO_REPORT = (
    "the command left no report in NIGHTJAR_RESULTS (exit status {status}); the run will show a lab setup problem. If "
    "the command writes reports elsewhere, name them with --report"
)
UPLOAD_STOPPED = "stopped before everything was uploaded; continue with: nightjar-lab run --resume --folder {folder}"
WAIT_STOPPED = "everything is uploaded; stopped while waiting for the bot"
NOT_UPLOADED = "the run stays in {folder}; the next run uploads it, or run: nightjar-lab run --resume --folder {parent}"
NOTHING_PENDING = "nothing to upload in {folder}"

# init
NO_INIT_COMMAND = "name the test command after --, as in: nightjar-lab init --target adreno -- pytest tests"
NO_PACKAGE = (
    "--package is not set; name what the CI installs: a wheel that the maintainers gave you, or "
    "git+https://git.example.org/nightjar@SHA#subdirectory=lab with the full SHA of a commit that you have reviewed. "
    "nightjar-lab is on no package index, where anybody could register the name and run code in your lab"
)
MATRIX_NEEDS_GITHUB = "--matrix writes a workflow of GitHub Actions only, not of {ci}; leave out --ci"
FILES_EXIST = "{names} exist in {folder}, and init overwrites nothing; remove them, or name another --folder"
FILE_WRITTEN = "wrote {path}"
DRY_RUN = "Running the command once; nothing is uploaded."
DRY_RUN_FAILED = (
    "The files are written, but the command ended with status {status} here. That is fine if tests failed; otherwise "
    "correct NIGHTJAR_TEST_COMMAND in nightjar-lab.env."
)
NEXT_STEPS = """\
Next: add {secrets} as secrets of the CI, commit these files, and start the job.
nightjar-lab doctor checks the credentials."""

# The tests of a job
TESTS_UNREADABLE = "NIGHTJAR_TESTS names a file that cannot be read: {reason}"
