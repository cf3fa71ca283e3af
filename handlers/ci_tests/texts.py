"""Every sentence of the sections about skipped tests and runtimes, and why results of CI could not be read."""

from __future__ import annotations

# Lists
FOLDED = "<details><summary>{title}: {count:,}</summary>\n\n{rows}\n\n</details>"
UNFOLDED = "{title}:\n{rows}"
HEADED = "**{title}** at {sha} ({at}):"
PAGE = "[Everything the bot did on this pull request]({url})"

# Skipped tests
SKIPS_TITLE = "Skipped tests"
SAME = "**Skipped tests:** no difference from {base} at {sha} ({at})."
SAME_SUITE = "{suite}: no difference from {base}."
DIFFERS = "{suite}: {what}, compared with {base}."
NEWLY, AGAIN = ("test is newly skipped", "tests are newly skipped"), ("test runs again", "tests run again")
REMOVED = ("test was removed", "tests were removed")
NO_BASE_OF_SUITE = "{suite}: no earlier results on the base branch to compare with."
SUITE_MISSING = "{suite}: **no results**, although the base has some."
INCOMPLETE = "{suite}: some results are missing or unreadable."
SKIPS_UNSEARCHED = (
    "{suite}: the search for renamed tests was skipped because it would take more than {most:,} steps; renamed tests "
    "count as removed."
)
MORE_SUITES = "and {count:,} more suites"
REQUIRED = "**{what} did not run**; {path} on {branch} lists the required tests."
REQUIRED_WHAT = ("required test", "required tests")
WAS_SKIPPED, NOT_THERE, NO_SUITE = "skipped", "missing", "{suite}: no results for the whole suite"
REQUIRED_UNKNOWN = "We could not read the list of required tests, {path} on {branch}: {why}."
NEWLY_TITLE, AGAIN_TITLE, REQUIRED_TITLE = "Newly skipped", "Running again", "Required, but did not run"
SKIPS_FAILED = "**Skipped tests:** we could not compare the tests at {sha}: {why}"
NO_FILE, NO_PLAIN_FILE, FILE_TOO_LARGE = "it does not exist", "it is not a file", "it is larger than 1 MB"
NO_TEST = "it lists no test"
NO_JSON = "it is not JSON: {why}"
WRONG_SHAPE = 'it must be one object of lists of test IDs, as in {"operators": ["tests/test_add.py::test_add"]}'

# Runtimes
RUNTIMES_TITLE = "Runtime of tests"
RUNTIME_CHANGED = "{suite}: {change} ({before} → {now}, {tests_before:,} → {tests:,} tests), compared with {base}."
MANY_TIMES = "{times:,.0f} times as long"
SLOW_TITLE = "Slow new tests"
RUNTIMES_UNSEARCHED = (
    "The search for renamed tests was skipped because it would take more than {most:,} steps, so some of these may be "
    "renamed."
)
RUNTIMES_FAILED = "**Runtime of tests:** we could not compare the runtimes at {sha}: {why}"

# Why there are no results, or not all of them
NO_HEAD = "{sha} is not the head of #{number}"
NO_RESULTS = "there are no results for {sha}"
ANOTHER_SOURCE = "app.yaml now names another source of results"
NO_ARTIFACTS = "The run of {workflow} has no artifact that matches {patterns}."
NO_BASE = (
    "No results to compare with: no run of {workflow} on {branch} was green at the merge base {sha} or at an earlier "
    "commit among its newest {most}."
)
BASE_EMPTY = "No results to compare with: {run} at {sha} has no matching artifact that can be read."
THE_RUN = "[the run of {workflow}]({url})"
ARTIFACT_UNREADABLE = "The artifact {name} cannot be read: {why}."
ARTIFACT_TOO_LARGE = "it is larger than {mib} MiB"
ARTIFACT_REMOVED = "GitHub no longer has it"
ARTIFACT_NOT_READ = "an earlier artifact of this run was too expensive to read, so the rest of the run is skipped"
ARTIFACTS_LEFT_OUT = "{count} artifacts match; only the first {most} were read."
FILES_TOO_LONG = "the files of all artifacts together have more than {limit:,} bytes uncompressed"
NO_REPORTS = "it has no file that ends with {suffix}"
MORE_WRONG = "and {count:,} more of its files cannot be read"
NO_ZIP = "it is not a complete zip archive"
DIRECTORY_TOO_LARGE = "its list of files is larger than {mib} MiB"
TOO_MANY_FILES = "it has more than {most:,} files"
ZIP_TOO_LONG = "its files together have more than {limit:,} bytes uncompressed"
BOMB = "{name} is more than {ratio} times as large uncompressed, and no real report is"
BROKEN = "{name} cannot be decompressed"
ENCRYPTED = "{name} is encrypted"
OTHER_METHOD = "{name} is compressed with something other than deflate"

# Reasons in the audit log
WHY_SKIPS_FAILED, WHY_RUNTIMES_FAILED = "comparing skipped tests failed", "comparing test runtimes failed"
WHY_NOT_FINISHED = "the run ended as {conclusion}, so its tests did not finish"
WHY_REQUESTED = "pull requests with the head {sha}: {count}"
WHY_COMPARED = "compared the results of {sha}"
