"""GoogleTest's XML (`--gtest_output=xml`): the outcome is in attributes, and a case may have several failures."""

from __future__ import annotations

from collections.abc import Sequence

from nightjar_formats.model import Case, Status
from nightjar_formats.readers.junit.document import Part, SuiteElement
from nightjar_formats.readers.junit.outcomes import PASSED, CaseOutcome, build, outcome, place

ROOT = "AllTests"
# https://google.github.io/googletest/advanced.html#generating-an-xml-report
RESULTS = frozenset({"completed", "skipped", "suppressed"})
DISABLED = CaseOutcome(Status.SKIPPED, message="disabled")
SKIPPED = CaseOutcome(Status.SKIPPED)


def recognizes(attributes: dict[str, str], suite: SuiteElement) -> bool:
    """Recognize a case of GoogleTest by its attribute `result`; before version 1.10, by the name of the root."""
    return attributes.get("result") in RESULTS or (
        suite.root.get("name") == ROOT and attributes.get("status") in ("run", "notrun")
    )


def case(attributes: dict[str, str], parts: Sequence[Part]) -> Case:
    """Read a case: `status` says whether it ran, `result` whether it completed; a failure outweighs a skip."""
    get = attributes.get
    ended = outcome(parts) if parts else PASSED
    if ended is PASSED and (get("status") == "notrun" or get("result") == "suppressed"):
        ended = DISABLED
    elif ended is PASSED and get("result") == "skipped":
        ended = SKIPPED
    return build(attributes, get("classname", ""), ended, *place(attributes))
