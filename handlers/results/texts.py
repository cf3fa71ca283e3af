"""Every sentence about results of hardware labs, except those of the check run: `bot.results.report.texts` has them."""

from __future__ import annotations

# Answers to the buttons of a check run
NOTICE = "> {text}"
IGNORE_NEEDS_WRITE = (
    "{login} asked to ignore these failures for {pull}, which needs write access. Ask a maintainer to press the button."
)
IGNORE_CHANGED = (
    "{login} asked to ignore new failures, but the results have changed since. Press the button again to ignore the "
    "failures shown here."
)
NOTHING_TO_IGNORE = "{login} asked to ignore new failures, but there are none to ignore."
TOO_MANY_TO_IGNORE = "{login} asked to ignore more than {most:,} failures. So many probably have one cause: fix that."

# Why a check run is or is not written
TARGET_REMOVED = "app.yaml no longer has target {target} of lab {lab}; its check run stays as it is"
ALL_REQUESTED = "somebody requested all checks of the commit; {count} of them come from labs"
NO_RESULTS_OF_TARGET = "there are no results for {target} at {sha}"
RESULTS_OFF = "app.yaml no longer has results for {repository}"
NOT_A_RUN_KEY = "{key} is not the key of a run below {prefix}"
WATCH_FAILED = "results: a scan of the bucket failed"

NEEDS_BUCKET = (
    "results.bucket is not set in app.yaml; with PostgreSQL, name a bucket, because several servers cannot share a "
    "folder of one machine"
)
FILES_REMOVED = "removed the files of {runs}"

# What the audit log says
CHECK_REQUESTED = "requested a new {name} on {sha}"
WHY_ARRIVED = "{key} arrived in the bucket"

# The API
NO_RESULTS = "This bot accepts no results from hardware labs for this repository."
BAD_REPOSITORY = "Write the repository as OWNER/NAME."
UNKNOWN_PARAMETER = "Unknown parameter {name}. Available: {known}."
BAD_LIMIT = "limit must be a whole number from 1 to {most}."
BAD_STATE = "state must be one of {states}."
BAD_NAME = "{name} must be written as in the bucket's keys."
BAD_SHA = "sha must be the full SHA of a commit: 40 hexadecimal digits in lower case."
BAD_BEFORE = "before must be the `next` value of an earlier page."
UNAVAILABLE = "The results cannot be read right now. Try again later."
DATABASE_AWAY = "the database does not answer"

# `nightjar results ingest` and `rebuild`
NOT_OURS = "app.yaml has no results for {repository}"
NOT_A_RUN = "this is not the layout of a run: OWNER/NAME/LAB/TARGET/SHA/RUN/manifest.json"
GITHUB_ERROR = "we could not ask GitHub: {error}"
STAYS_STORED = "the stored results were left unchanged, because the run cannot be read again: {reason}"

NO_AUDIENCE = "needs the top-level key public_url, which is the audience of the tokens"
