"""Every sentence of the section about skipped tests."""

from __future__ import annotations

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
MORE_SUITES = "and {suites}"
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

# The reason in the audit log
WHY_SKIPS_FAILED = "comparing skipped tests failed"
