"""Every sentence about a run that a lab can read before it uploads: what is wrong with it, and what to do."""

from __future__ import annotations

from nightjar_formats.limits import (
    MAX_ARTIFACT_BYTES,
    MAX_ARTIFACTS,
    MAX_FILE_BYTES,
    MAX_FILES,
    MAX_MANIFEST_BYTES,
    MAX_PATH_STEPS,
    MAX_RUN_BYTES,
)

# The manifest
MANIFEST_TOO_LARGE = f"manifest.json is larger than {MAX_MANIFEST_BYTES:,} bytes; put measurements into result files"
NOT_JSON = "manifest.json is not JSON: {reason}"
NOT_AN_OBJECT = "manifest.json must hold a JSON object"
FAULTS = "manifest.json: {faults}"
OTHER_SCHEMA = "manifest.json: schema must be {schema}, the only one that this version of Nightjar reads"
OTHER_SHA = "manifest.json: sha is {claimed}, but the folder is for {sha}; upload to the folder of the commit"
NAMED_TWICE = "manifest.json: {name} is named twice"
NAMES_ITSELF = "{manifest}: it must not name {manifest} itself"
NO_FILES = "manifest.json: files is empty; name at least one file, even if no test ran"
RUN_TOO_LARGE = f"manifest.json: its files have more than {MAX_RUN_BYTES >> 20} MiB together; upload the run in shards"
KEY_MISSING = "{key} is missing; it must be {words}"
KEY_WRONG = "{key} must be {words}"
MANIFEST_FIELDS = {
    "sha": "40 hexadecimal digits, a to f in lower case",
    "suite": "up to 100 letters, digits, spaces and . _ + / -, as in operators",
    "files": f"a list of 1 to {MAX_FILES} objects",
    "name": "a file's name of letters, digits and . _ + -, without folders, as in te.xml",
    "bytes": "a whole number from 0",
    "sha256": "64 hexadecimal digits, a to f in lower case",
    "format": "the name of a format, as in junit",
    "artifacts": f"a list of at most {MAX_ARTIFACTS} objects",
    "type": "the type that belongs to the end of the name, as in text/plain for log.txt or image/png for plot.png",
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
    "job": "the ID of a job, as in the bot's answer to the claim",
}

# Files
FILE_MISSING = "{name} has not arrived"
FILE_OF_OTHER_SIZE = "{name} has {found:,} bytes, but manifest.json says {expected:,}"
FILE_OF_OTHER_CONTENT = "{name} is not the file that manifest.json describes: its SHA-256 is {found}"
FILE_TOO_LARGE = f"{{name}} has more than {MAX_FILE_BYTES >> 20} MiB, which is the limit; split or compress it"

# Artifacts
ARTIFACT_TYPES = "text (.txt, .log), JSON (.json), and images (.png, .jpg, .gif, .webp)"
ARTIFACT_TYPE = (
    f"{{name}} has a type that is not accepted as a file of a run. Accepted are {ARTIFACT_TYPES}; text and JSON may be "
    "compressed as .gz or .zst. Convert it, or leave it out"
)
ARTIFACT_CONTENT = (
    "{name} does not contain what its name says ({type}, compressed only if it ends in .gz or .zst). Rename it, or "
    "leave it out"
)
ARTIFACT_TOO_LARGE = (
    f"{{name}} has more than {MAX_ARTIFACT_BYTES >> 20} MiB, the limit for a file beside the reports. Compress it with "
    "gzip or zstd, or shorten it"
)
TOO_MANY_ARTIFACTS = f"a run has at most {MAX_ARTIFACTS} files beside its reports. Leave some out"
NO_REPORT = (
    "{name} is the log of a run, and no report is named. Name the report as well, such as a JUnit file; if {name} is "
    "the report itself, rename it"
)

# The check of files on the machine where they are
PATH_UNREADABLE = "{path} cannot be read: {reason}"
NO_RUN = "{path} has no manifest.json; name result files or the folder of one run"
IS_FOLDER = "{path} is a folder; name the files in it"
NOT_NAMED = "{name} is not in manifest.json, so the bot does not read it"
NOT_LAID_OUT = (
    "the folder's path does not end with OWNER/NAME/LAB/TARGET/SHA/RUN, so only the manifest says "
    "which commit was tested"
)
LAB_PROBLEM = "the check run would report a lab setup problem: {why}"
TOO_MANY_STEPS = (
    f"finding its tests among the repository's files would take more than {MAX_PATH_STEPS:,} steps; write paths as "
    "they "
    "are in the repository"
)

# What a lab could do better
NO_TEST = "it has no tests; check which tests the lab's command selects"
NO_FILE = (
    "no case names its file, so we find tests by their dotted names, and annotations have no line; use "
    "pytest-reportlog, or pytest -o junit_family=xunit1"
)
NO_MODULE = (
    "no case names its file, and no test's name contains a module such as tests.test_add, so we cannot find the tests' "
    "files; use pytest-reportlog, pytest -o junit_family=xunit1, or another reporter that writes `file` and `line`"
)
REPEATED = (
    "cases with the same name as another one, which count as one test with it: {count:,}, as in {examples}; give each "
    "test its own name"
)
CHANGING = (
    "names with an address, a hash or a temporary path that differs in every run, so that each run seems to have new "
    "tests: {count:,}, as in {examples}; give parameters IDs of their own (pytest: `ids=`)"
)
NO_DURATION = "cases without a duration: {count:,} of {cases:,}"

# An upload
NAMED_MANIFEST = "{path} has the name of a run's manifest; rename it if it is a result file"
GIVEN_TWICE = "{path} is named twice"
TOO_MANY_FILES = f"a run has at most {MAX_FILES} files; merge some of them, or upload the run in shards"
UPLOAD_TOO_LARGE = f"{{name}} has more than {MAX_FILE_BYTES >> 20} MiB, which is the limit; use --compress or shards"
STILL_TOO_LARGE = f"{{name}} has more than {MAX_FILE_BYTES >> 20} MiB even compressed, which is the limit; use shards"
NOT_A_KEY = (
    "{key} is not the folder of a run; lab and target are letters, digits and . _ -, up to 64 of them, and a target's "
    "@ and : are written %40 and %3A"
)
UPLOAD_AGAIN = "{reason}; repeat the same command with --run-id {run_id} to continue where it stopped"
MANIFEST_THERE = (
    "{key} is already in the bucket, and these credentials cannot read it: a run with this ID was uploaded before. If "
    "it was this run, nothing is left to do; if it was another one, use another run ID"
)

# Why a run has no usable results
NO_TESTS = "it has no tests; check which tests the lab's command selects"
CRASHED = (
    "the lab's command ended with exit status {status} before its first test; check the lab's installation and device"
)
ONLY_CRASHES = "every test crashed; check the lab's installation and device"
ALL_SKIPPED = (
    "all {skipped:,} tests were skipped, of which {good:,} passed before; check whether the lab's device was found"
)
MASS_COLLECTION = "{broken:,} of {files:,} test files could not be imported; check the lab's installation"
ONE_CAUSE = (
    "{failed:,} of the {ran:,} tests that ran failed for the same reason; check the lab's installation and device"
)

# Benchmarks
BENCHMARK_TOO_LARGE = "{name} has more than {most:,} bytes"
BENCHMARK_UNREADABLE = "{name} is not the report of a benchmark: {reason}"
NOT_WITHIN = "{number} is not a number from {least} to {most}"
