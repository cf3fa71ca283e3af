"""JUnit XML of no special dialect: Bazel, Gradle, Jest and many more. Suites may be nested, and cases have no class."""

from __future__ import annotations

from collections.abc import Sequence

from nightjar_formats.model import Case, Status
from nightjar_formats.readers import pytest
from nightjar_formats.readers.outcomes import PASSED, CaseOutcome, build, outcome, passed_case, place
from nightjar_formats.readers.xml import Part, SuiteElement

STATUSES = {
    "skipped": Status.SKIPPED,
    "disabled": Status.SKIPPED,
    "ignored": Status.SKIPPED,
    "notrun": Status.SKIPPED,
    "fail": Status.FAILED,
    "failed": Status.FAILED,
    "failure": Status.FAILED,
    "error": Status.ERRORED,
    "errored": Status.ERRORED,
}
"""The status for each value of the attribute `status`, for tools that write no element for it."""


def case(attributes: dict[str, str], parts: Sequence[Part], suite: SuiteElement) -> Case | None:
    """Read a case. Without a class, the path of its suites is its class, unless the suite has the test's name."""
    if not parts and (passed := passed_case(attributes)) is not None:
        return passed
    get = attributes.get
    classname = get("classname")
    if not classname:
        # For a test that wrote no report, Bazel writes a suite and a case of the same name.
        classname = "" if suite.path == get("name") else suite.path
    # Somebody may have merged the reports of several tools into one suite.
    is_pytest = bool(parts) and pytest.is_own(parts)
    if is_pytest:
        ended = pytest.outcome_of(attributes, get("classname", ""), parts)
    else:
        ended = outcome(parts) if parts else PASSED
    if ended is PASSED and "status" in attributes:
        ended = CaseOutcome(STATUSES.get(attributes["status"].lower(), Status.PASSED))
    return build(attributes, classname, ended, *place(attributes, first=0 if is_pytest else 1))
