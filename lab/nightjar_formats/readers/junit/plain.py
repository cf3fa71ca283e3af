"""JUnit XML of any tool but pytest: Bazel, Gradle, Jest, Surefire and many more. Suites may be nested.

Each case is read by itself, because somebody may have merged the reports of several tools into one suite.
"""

from __future__ import annotations

from collections.abc import Sequence

from nightjar_formats.model import BAD, Case, Status, Trouble
from nightjar_formats.readers.junit import ctest, googletest, pytest
from nightjar_formats.readers.junit.document import Part, SuiteElement
from nightjar_formats.readers.junit.names import PLACEHOLDERS, class_of
from nightjar_formats.readers.junit.outcomes import PASSED, CaseOutcome, build, outcome, passed_case, place

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
SCHEMA, SUREFIRE = "xsi:noNamespaceSchemaLocation", "surefire"
CLASS = "(class)"
"""The name for a class that failed before its first test; Surefire writes name="" for it, and its package."""


def case(attributes: dict[str, str], parts: Sequence[Part], suite: SuiteElement) -> Case:
    """Read a case. Where its class names nothing, the path of its suites is its class; its file may be the suite's."""
    is_plain = not parts and not suite.file and attributes.get("classname") not in PLACEHOLDERS
    if is_plain and (passed := passed_case(attributes)) is not None:
        return passed
    if googletest.recognizes(attributes, suite):
        return googletest.case(attributes, parts)
    if ctest.recognizes(attributes):
        return ctest.case(attributes, parts)
    get = attributes.get
    is_pytest = bool(parts) and pytest.is_own(parts)
    path, line = place(attributes, first=0 if is_pytest else 1)
    path = path or suite.file
    classname = class_of(attributes, suite.path, path)
    if is_pytest:
        ended = pytest.outcome_of(attributes, get("classname", ""), parts)
        if ended.trouble is Trouble.COLLECTION:
            classname = ""  # the case stands for the file of its name
    else:
        ended = outcome(parts) if parts else PASSED
    if ended is PASSED and "status" in attributes:
        ended = CaseOutcome(STATUSES.get(attributes["status"].lower(), Status.PASSED))
    if get("name") == "" and ("." in classname or SUREFIRE in suite.attributes.get(SCHEMA, "")):
        attributes = attributes | {"name": CLASS}
        if ended.status in BAD:
            ended = ended._replace(trouble=Trouble.SETUP)
    return build(attributes, classname, ended, path, line)
