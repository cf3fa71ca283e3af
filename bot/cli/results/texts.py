"""Every sentence of `nightjar results`, except the help of options."""

from __future__ import annotations

# check
GOOD = "OK to upload"
BAD = "The bot would refuse this. Fix it before you upload."
UNREADABLE = "Some files cannot be read here. Correct the paths or permissions, and check again."
REFUSED_FILE = "{name}: refused: {problem}"
REFUSED_RUN = "refused: {problem}"
UNREADABLE_FILE, UNREADABLE_RUN = "{name}: {problem}", "{problem}"
TOGETHER = "all files: {counts}"
ADVICE = "advice: {advice}"
ADVICE_FOR = "advice: {names}: {advice}"
AND_MORE = " and {more} more"
NO_TESTS = "no tests"
ERRORED = " (errored: {troubles})"

# upload
NOTHING_SENT = "nothing was uploaded; fix the files, or upload them unchanged with --no-check"
MISSING_OPTION = "{option} is missing: {why}. Give it, or set {variable}"
NO_CONFIG = "there is no {path} to read it from"
NO_RESULTS = "{path} has no repository with results"
SEVERAL_REPOSITORIES = "{path} has several repositories with results"
OTHER_REPOSITORY = "{path} has no results for {repository}; nothing was uploaded"
RUN = "run {run_id}"
FILE = "{name} ({bytes:,} bytes): {state}"
UPLOADED, ALREADY_THERE = "uploaded", "already uploaded"
NOT_VERIFIED = """\
Uploaded, but not verified: without --api (NIGHTJAR_URL) we cannot ask the bot whether it accepts this run.
If it does, the check run hardware/{lab}/{target} appears on {sha} within about a minute.
If it does not, GET /api/v1/repos/{repository}/results/runs?sha={sha} on the bot says why."""
STORED = "The bot stored the run. Check run: hardware/{lab}/{target} on {sha}"
NOT_STORED = "the bot did not store the run ({state}): {reason}"
NOT_READ = "the bot has not read the run after {seconds:g} s; ask later: {url}"
UNKNOWN_TO_BOT = "cannot upload for {repository}: {error}; nothing was uploaded"
CANNOT_ASK = "uploaded, but we could not ask what became of the run: {error}; ask later: {url}"
UNREADABLE_ANSWER = "its answer is not a list of runs"

# ingest, rebuild, runs
NO_RUNS = "no runs"
NOT_AN_S3_URL = "{url} is not an S3 address; write s3://BUCKET/PREFIX"
UNKNOWN_REPOSITORY = "app.yaml has no results for {repository}"
NO_REPOSITORIES = "app.yaml has no repository with results"
NOTHING_THERE = "no run found in {place}: it has no manifest.json"
PUBLISHED = "the check runs are written"
WITH_A_SERVER = "a server that runs on this database will write the check runs"
NOT_PUBLISHED = "after {seconds:g} s some check runs are not written yet; a running server will write them"
NOT_IN_BUCKET = "{folder}: stored, but no longer in the bucket; it stays stored"
OUTCOME = "{place}: {state}"
OUTCOME_WHY = "{place}: {state}: {reason}"
RUNS_HEADER = ("RECEIVED", "REPOSITORY", "LAB", "TARGET", "COMMIT", "RUN", "SUITE", "STATE", "REASON")
