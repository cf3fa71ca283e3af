"""The XML of NUnit 3 and 4: nested suites, and an element for each test case.

https://docs.nunit.org/articles/nunit/technical-notes/usage/Test-Result-XML-Format.html. A suite is a case only if it
failed itself: in its one-time setup or teardown, or because it could not be loaded. Tests that failed because of the
setup of a suite around them (site Parent) are errored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from nightjar_formats.limits import MAX_PARTS
from nightjar_formats.model import BAD, Case, Status, Trouble
from nightjar_formats.readers import fields, texts, values
from nightjar_formats.readers.dotnet.shared import DotnetFailure
from nightjar_formats.readers.repairs import UNNAMED, Repair, Repairs
from nightjar_formats.readers.xml.walk import walk
from nightjar_formats.refused import Refused
from nightjar_formats.terminal import quoted_text

FORMAT = "nunit3"
ROOTS = {"test-run": "", "test-suite": "", "test-results": texts.NUNIT_2}
TEXTS = frozenset({"message", "stack-trace", "output"})
SHOWN = 80

# `Assert.Warn` does not fail a test (https://docs.nunit.org/articles/nunit/writing-tests/Warnings.html), and a test
# whose assumption does not hold is Inconclusive (https://docs.nunit.org/articles/nunit/writing-tests/Assumptions.html).
STATUSES = {
    "Passed": Status.PASSED,
    "Warning": Status.PASSED,
    "Failed": Status.FAILED,
    "Skipped": Status.SKIPPED,
    "Inconclusive": Status.SKIPPED,
}
_TROUBLES = {"SetUp": Trouble.SETUP, "TearDown": Trouble.TEARDOWN, "Parent": Trouble.SETUP}
_NOT_LOADED = frozenset({"Invalid", "NotRunnable"})
_TIMEOUT = "Test exceeded Timeout value"


def read(stream: BinaryIO, repairs: Repairs) -> Iterator[Case]:
    """Read the cases of a report, one for each test case, and one for each suite that failed itself.

    Raises TooMuch, Refused, or NotXml, which may come after cases, if the report ends too early.
    """
    return walk(stream, repairs, FORMAT, ROOTS, TEXTS, _NunitListener(repairs))


class _NunitResult:
    """An open test case or suite, and what was read about its outcome."""

    __slots__ = ("attributes", "failure", "has_cases", "more", "output", "reason")

    def __init__(self, attributes: dict[str, str]) -> None:
        self.attributes = attributes
        self.failure = DotnetFailure()
        self.reason = self.output = ""
        self.more: list[str] = []
        self.has_cases = False


class _NunitListener:
    """The open suites and the open test case at the current place of the document."""

    def __init__(self, repairs: Repairs) -> None:
        self._repairs = repairs
        self._open: list[_NunitResult] = []
        self._within = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in ("test-case", "test-suite"):
            self._open.append(_NunitResult(attributes))
        elif tag in ("failure", "reason", "assertion"):
            self._within = tag

    def end(self, tag: str, text: str) -> Iterable[Case]:
        if not self._open:
            return ()
        result = self._open[-1]
        if tag in ("test-case", "test-suite"):
            self._open.pop()
            case = _suite(result) if tag == "test-suite" else _test_case(result, self._repairs)
            if self._open:
                self._open[-1].has_cases |= tag == "test-case" or result.has_cases
            return () if case is None else (case,)
        if tag == "message":
            if self._within == "reason":
                result.reason = text
            elif self._within == "failure":
                result.failure.message = text
            elif self._within == "assertion" and len(result.more) < MAX_PARTS:
                result.more.append(text)
        elif tag == "stack-trace" and self._within == "failure":
            result.failure.stack_trace = text
        elif tag == "output":
            result.output = text
        elif tag == self._within:
            self._within = ""
        return ()

    def rest(self) -> Iterable[Case]:
        return ()


def _test_case(result: _NunitResult, repairs: Repairs) -> Case:
    get = result.attributes.get
    name = values.name(get("name") or get("fullname"))
    if not name:
        name = UNNAMED
        repairs.add(Repair.NAMELESS_ENTRIES)
    status = STATUSES.get(get("result", ""))
    if status is None:
        raise Refused(texts.NUNIT_RESULT.format(name=name[:SHOWN], result=quoted_text(get("result", "")[:SHOWN])))
    classname = _class(name, values.name(get("fullname")), values.name(get("classname")))
    return _case(result, name, f"{classname}::{name}" if classname else name, status)


def _suite(result: _NunitResult) -> Case | None:
    """Return a suite's case if the suite failed itself, and not only because of its tests, which are cases already."""
    get = result.attributes.get
    site = get("site", "Test")
    if get("result") != "Failed" or site in ("Child", "Parent"):
        return None
    if site == "Test" and get("label") not in _NOT_LOADED and (result.has_cases or not result.failure.message):
        return None
    # The full name of an assembly is its path, which differs between machines.
    full, short = get("fullname", ""), get("name", "")
    name = values.name((short if "/" in full or "\\" in full else full) or short) or "suite"
    case = _case(result, name, name, Status.ERRORED)
    return case if case.trouble else case._replace(trouble=Trouble.COLLECTION)


def _case(result: _NunitResult, name: str, nodeid: str, status: Status) -> Case:
    get = result.attributes.get
    label, trouble, message, text = get("label", ""), Trouble.NONE, "", ""
    path, line = result.failure.place() if status in BAD else ("", None)
    if status in BAD:
        message, text = result.failure.explain(result.output)
        trouble = _TROUBLES.get(get("site", ""), Trouble.NONE)
        if trouble or label in ("Cancelled", *_NOT_LOADED):
            status = Status.ERRORED
        if message.startswith(_TIMEOUT):
            status, trouble = Status.FAILED, Trouble.TIMEOUT
        if not text and result.more:
            message, text = values.message(result.more[0]), values.text("\n".join(result.more))
        message = message or label
    elif status is Status.SKIPPED:
        message = values.message(result.reason)
        if not message or get("result") == "Inconclusive":
            message = ": ".join(part for part in ((label or get("result", "")).lower(), message) if part)
    elif get("result") == "Warning":
        message = values.message(result.reason) or values.message(next(iter(result.more), ""))
    return Case(
        name=name,
        status=status,
        path=path,
        nodeid=values.name(nodeid),
        line=line,
        seconds=fields.seconds(get("duration", get("time"))),
        trouble=trouble,
        message=message,
        text=text,
    )


def _class(name: str, fullname: str, classname: str) -> str:
    """Return a test's class with the arguments of its fixture, which only the full name contains."""
    outer = fullname.removesuffix(f".{name}")
    return outer if outer != fullname and outer.startswith(classname) else classname
