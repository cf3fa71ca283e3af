"""Every sentence that a lab reads about its runs: why one is refused, waits or is incomplete, and what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nightjar_formats.limits import MAX_FILE_BYTES, MAX_FILES, MAX_MANIFEST_BYTES, MAX_PATH_STEPS, MAX_RUN_BYTES
from nightjar_formats.readers.repairs import Repairs

UNKNOWN_LAB = "app.yaml has no lab {lab} for {repository}; ask its maintainers to add it below results.labs"
UNKNOWN_TARGET = "app.yaml has no target {target} for the lab {lab}; available: {known}"
UNKNOWN_COMMIT = "there is no commit {sha} in {repository}"
OTHER_HEAD = "the head of pull request {number} is {head}, not {sha}; leave pull_request out, or test its head"
NO_SUCH_PULL_REQUEST = "there is no pull request {number} in {repository}"
NOT_TO_BE_TESTED = (
    "{sha} is neither on {branches} nor the head of a pull request; for a fork's pull request, set pull_request in "
    "the manifest"
)
TOO_MANY_RUNS = (
    "the lab has uploaded {runs} runs today (UTC), the limit in app.yaml (runs_per_day); upload this one "
    "tomorrow, under another run ID"
)
TOO_MANY_BYTES_TODAY = (
    "with this run the lab would exceed {megabytes} MB today (UTC), the limit in app.yaml "
    "(megabytes_per_day); upload it tomorrow, under another run ID"
)
NO_TEST = "it has no tests; check which tests the lab's command selects"
NO_FILE = (
    "no case names its file: tests are found by their dotted names, and "
    "annotations have no line; use pytest-reportlog, or pytest -o junit_family=xunit1"
)
NO_MODULE = (
    "no case names its file, and no name has a test module such as "
    "tests.test_add, so we cannot resolve the names; use pytest-reportlog, pytest -o junit_family=xunit1, or whatever "
    "makes your runner write `file` and `line`"
)
REPEATED = (
    "{count:,} of its cases share a name with another one and count as one test with it, as in {examples}; give "
    "different tests different names"
)
CHANGING = (
    "{count:,} names have an address, a hash or a temporary path, which differs in every run, so that each run seems "
    "to have new tests, as in {examples}; give parameters IDs of their own (pytest: `ids=`)"
)
NO_DURATION = "{count:,} of its {cases:,} cases have no duration"
MANIFEST_TOO_LARGE = f"manifest.json is larger than {MAX_MANIFEST_BYTES:,} bytes; put measurements into result files"
NOT_JSON = "manifest.json is not JSON: {reason}"
NOT_AN_OBJECT = "manifest.json must hold a JSON object"
FAULTS = "manifest.json: {faults}"
OTHER_SHA = "manifest.json: sha is {claimed}, but the folder is for {sha}; upload to the folder of the commit"
NAMED_TWICE = "manifest.json: files names {name} twice"
NO_FILES = "manifest.json: files is empty; name at least one file, even if no test ran"
RUN_TOO_LARGE = f"manifest.json: its files have more than {MAX_RUN_BYTES >> 20} MiB together; upload the run in shards"
FILE_MISSING = "{name} has not arrived"
FILE_OF_OTHER_SIZE = "{name} has {found:,} bytes, and manifest.json says {expected:,}"
FILE_OF_OTHER_CONTENT = "{name} is not the file that manifest.json describes: its SHA-256 is {found}"
FILE_TOO_LARGE = f"{{name}} has more than {MAX_FILE_BYTES >> 20} MiB, which is the limit; split or compress it"
BEYOND = "the index is beyond the total"
KEY_MISSING = "{key} is missing; it must be {words}"
KEY_WRONG = "{key} must be {words}"
PATH_UNREADABLE = "{path} cannot be read: {reason}"
NO_RUN = "{path} has no manifest.json; name result files or the folder of one run"
IS_FOLDER = "{path} is a folder; name the files in it"
LAB_PROBLEM = "the check run would report a lab setup problem: {why}"
NOT_NAMED = "{name} is not in manifest.json, so the bot does not read it"
NOT_LAID_OUT = (
    "the folder's path does not end with OWNER/NAME/LAB/TARGET/SHA/RUN, so only the manifest says "
    "which commit was tested"
)
FILE_UNREADABLE = "{name}: {why}"
OTHER_CASE = (
    "the folder is for {found}, but app.yaml names the repository {repository}; upload the run to the folder "
    "{prefix}{repository}/"
)
ONCE_NAMED = (
    "once app.yaml has it, ask a maintainer to run `nightjar results ingest`, or upload the run under another run ID"
)
ONCE_CORRECTED = "fix this and upload the run under another run ID"
MANIFEST_REMOVED = "{key} was removed"
LARGER = "{name} has more than the {expected:,} bytes that manifest.json says"
READING_COST = "the files could not be read: {why}; upload the run in shards, under another run ID"
NEVER_ARRIVED = "{missing}; the deadline has passed, so upload the run again under another run ID"
NOT_A_KEY = (
    "{key} is not the folder of a run; lab and target are letters, digits and . _ -, up to 64 of them, and a target's "
    "@ and : are written %40 and %3A"
)
TWO_OF_A_NAME = "two files are named {name}; rename one, because a run has one folder"
BAD_NAME = "{name} cannot be the name of a run's file; use only letters, digits and . _ + -, as in te.xml"
UPLOAD_TOO_LARGE = f"{{name}} has more than {MAX_FILE_BYTES >> 20} MiB, which is the limit; use --compress or shards"
STILL_TOO_LARGE = f"{{name}} has more than {MAX_FILE_BYTES >> 20} MiB even compressed, which is the limit; use shards"
UPLOAD_AGAIN = "{reason}; repeat the same command with --run-id {run_id} to continue where it stopped"
MANIFEST_THERE = (
    "{key} is already in the bucket, and these credentials cannot read it: a run with this ID was uploaded before. If "
    "it was this run, nothing is left to do; if it was another one, use another run ID"
)
REPAIRED = "{name} was repaired: {repairs}"
MORE_REPAIRED = "and {count:,} more files were repaired"
MOST_REPAIRED = 5
"""Files of a run of which it is said what was repaired in them."""

# The manifest, and what an upload finds on this machine
OTHER_SCHEMA = "manifest.json: schema must be {schema}, the only one that this version of Nightjar reads"
NAMES_ITSELF = "{manifest}: files must not name {manifest} itself"
MANIFEST_FIELDS = {
    "sha": "40 hexadecimal digits, a to f in small letters",
    "suite": "up to 100 letters, digits, blanks and . _ + / -, as in operators",
    "files": f"a list of 1 to {MAX_FILES} objects",
    "name": "a file's name of letters, digits and . _ + -, without folders, as in te.xml",
    "bytes": "a whole number from 0",
    "sha256": "64 hexadecimal digits, a to f in small letters",
    "format": "the name of a format, as in junit",
    "attempt": "a whole number from 1 to 10000",
    "shard": 'an object, as in {"index": 1, "total": 4}',
    "index": "a whole number from 1 to 10000",
    "total": "a whole number from 1 to 10000, and not less than index",
    "started_at": "a time with its zone, as in 2026-11-20T05:10:00Z",
    "finished_at": "a time with its zone, as in 2026-11-20T05:31:10Z",
    "exit_status": "a whole number",
    "pull_request": "the number of a pull request",
    "environment": "an object of at most 100 texts, numbers, true, false or null",
    "log_url": "a text of at most 2000 characters",
    "job": "the id of a job, as the bot gave it",
}
FOLDER = "{path} is a folder; name the files in it"
TOO_MANY_STEPS = (
    f"the names of its tests need more than {MAX_PATH_STEPS:,} steps to be found among the repository's files; give "
    "the paths as they are in the repository"
)


def repaired(names: Sequence[str], repairs: Iterable[Repairs]) -> str:
    """Say what was repaired in the files of a run, "" if nothing was."""
    found = [(name, "; ".join(of.sentences())) for name, of in zip(names, repairs, strict=True)]
    lines = [REPAIRED.format(name=name, repairs=text) for name, text in found if text]
    more = len(lines) - MOST_REPAIRED
    return ". ".join(lines[:MOST_REPAIRED] + ([MORE_REPAIRED.format(count=more)] if more > 0 else []))
