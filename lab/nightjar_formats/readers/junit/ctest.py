"""Read CTest's `--output-junit` (`cmCTestTestHandler::WriteJUnitXML`): each test has a status, and a log as output."""

from __future__ import annotations

from collections.abc import Sequence

from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.readers.junit.document import Part
from nightjar_formats.readers.junit.outcomes import PASSED, CaseOutcome, build, outcome

# https://github.com/Kitware/CMake/blob/master/Source/CTest/cmCTestTestHandler.cxx
STATUSES = frozenset({"run", "fail", "disabled", "notrun"})
NOT_STARTED = ("Unable to find", "Required Files Missing", "Unable to start", "BAD_COMMAND")
"""The beginnings of statuses of tests that could not run. Nobody skipped them; CTest itself counts them as failed."""
CRASHES = frozenset({"SEGFAULT", "ILLEGAL", "INTERRUPT", "NUMERICAL", "OTHER_FAULT", "Subprocess aborted"})
TIMEOUT = "Timeout"
DISABLED = "disabled"


def recognizes(attributes: dict[str, str]) -> bool:
    """Recognize a case of CTest by its status, and by its class, which repeats its name."""
    return attributes.get("status") in STATUSES and attributes.get("classname") == attributes.get("name")


def case(attributes: dict[str, str], parts: Sequence[Part]) -> Case:
    """Read a case. Its ID is its name, which CTest repeats as the class."""
    return build(attributes, "", _ended(attributes.get("status", ""), outcome(parts) if parts else PASSED))


def _ended(status: str, stated: CaseOutcome) -> CaseOutcome:
    message = stated.message
    if status == "disabled":
        return CaseOutcome(Status.SKIPPED, message=message or DISABLED)
    if status == "notrun" and message.startswith(NOT_STARTED):
        return CaseOutcome(Status.ERRORED, trouble=Trouble.SETUP, message=message)
    if status == "notrun":
        return CaseOutcome(Status.SKIPPED, message=message)
    if status == "fail":
        crashed = Trouble.CRASH if message in CRASHES else Trouble.NONE
        return stated._replace(status=Status.FAILED, trouble=Trouble.TIMEOUT if message == TIMEOUT else crashed)
    return stated
