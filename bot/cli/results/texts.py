"""Every sentence of `nightjar results`, except the help of options."""

from __future__ import annotations

# upload
MISSING_OPTION = "{option} is missing: {why}. Add it, or set {variable}"
NO_CONFIG = "there is no {path} to read it from"
NO_RESULTS = "{path} has no repository with results"
SEVERAL_REPOSITORIES = "{path} has several repositories with results"
OTHER_REPOSITORY = "{path} has no results for {repository}; nothing was uploaded"

# ingest, rebuild, runs
NO_RUNS = "no runs"
NOT_AN_S3_URL = "{url} is not an S3 address; write s3://BUCKET/PREFIX"
UNKNOWN_REPOSITORY = "app.yaml has no results for {repository}"
NO_REPOSITORIES = "app.yaml has no repository with results"
NOTHING_THERE = "no run found in {place}: it has no manifest.json"
PUBLISHED = "the check runs are written"
WITH_A_SERVER = "a server on this database will write the check runs"
NOT_PUBLISHED = "after {seconds:g} s some check runs are not written yet; a running server will write them"
NOT_IN_BUCKET = "{folder}: no longer in the bucket; its stored results were left unchanged"
OUTCOME = "{place}: {state}"
OUTCOME_WHY = "{place}: {state}: {reason}"
RUNS_HEADER = ("RECEIVED", "REPOSITORY", "LAB", "TARGET", "COMMIT", "RUN", "SUITE", "STATE", "REASON")

# search
NAME_A_REPOSITORY = "app.yaml does not have exactly one repository with results; name one with --repo"
NO_REQUESTS = "no target that accepts requests is named {targets}"
ONE_MEASURING_TEST = "a search for a measurement is for one test, and {count} are named"
SEARCH_REQUESTED = "search {id} is requested"
SEARCH_WAITS = "no server runs on this database: the search begins when one does"

# measurements
NO_MOVES = "no measurement has changed"
MOVES_HEADER = ("SINCE", "COMMITTED", "TARGET", "TEST", "CHANGE", "STATE")
ENDED_AT = "ended at {sha}"
NO_MEASUREMENTS = "{test} measured nothing; its ID must be as check runs show it"
SERIES_HEADER = ("TARGET", "SUITE", "MEASUREMENT", "NIGHTS", "NEWEST", "COMMIT", "EXPECTED")
MEASURED_HEADER = ("FILE", "TEST", "MEASUREMENT", "VALUE", "BETTER", "SAMPLES")
NOTHING_MEASURED = "no test of these files measures anything; see docs/labs.md, Send measurements"
ONLY_STORED = "--target and --repo select stored results: leave them out, or the files"
NOT_READ = "{path} could not be read: {reason}"
VALUE, EXPECTED = "{value}{unit}", "{low} to {high}{unit}"
