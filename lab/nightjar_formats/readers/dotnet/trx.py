"""TRX, the XML of Visual Studio's test tools (`dotnet test --logger trx`, vstest.console, mstest).

A result refers to a definition, which names its class. vstest writes the definitions after the results, so results wait
for theirs, up to a limit, and lose their texts if there are many. A test with rows of data is a case, and so is each
row. A crash of the test host is a case.

https://github.com/microsoft/vstest, src/Microsoft.TestPlatform.Extensions.TrxLogger, and vstst.xsd of Visual Studio.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import BinaryIO

from nightjar_formats.limits import MAX_UNFINISHED_CHARACTERS
from nightjar_formats.model import BAD, Case, Status, Trouble
from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.dotnet.shared import DotnetFailure, class_and_name
from nightjar_formats.readers.repairs import UNNAMED, Repair, Repairs
from nightjar_formats.readers.unfinished import ENTRY, UnfinishedBudget
from nightjar_formats.readers.xml.walk import walk
from nightjar_formats.refused import Refused
from nightjar_formats.terminal import quoted_text

FORMAT = "trx"
ROOTS = {"TestRun": ""}
TEXTS = frozenset({"Message", "StackTrace", "StdOut", "Text"})
TEST_RUN = "(test run)"
SHOWN = 80

OUTCOMES = {
    "Passed": (Status.PASSED, Trouble.NONE),
    "Completed": (Status.PASSED, Trouble.NONE),
    "PassedButRunAborted": (Status.PASSED, Trouble.NONE),
    "Warning": (Status.PASSED, Trouble.NONE),
    "Failed": (Status.FAILED, Trouble.NONE),
    "Timeout": (Status.FAILED, Trouble.TIMEOUT),
    "Error": (Status.ERRORED, Trouble.NONE),
    "": (Status.ERRORED, Trouble.NONE),
    "Aborted": (Status.ERRORED, Trouble.CRASH),
    "Disconnected": (Status.ERRORED, Trouble.CRASH),
    "InProgress": (Status.ERRORED, Trouble.CRASH),
    "NotRunnable": (Status.ERRORED, Trouble.SETUP),
    "NotExecuted": (Status.SKIPPED, Trouble.NONE),
    "Inconclusive": (Status.SKIPPED, Trouble.NONE),
    "Pending": (Status.SKIPPED, Trouble.NONE),
}
"""mstest does not write the outcome Error, because it is the default of its enumeration."""

_RESULTS = frozenset({"UnitTestResult", "TestResult", "GenericTestResult", "ManualTestResult", "WebTestResult"})
_DEFINITIONS = frozenset({"UnitTest", "GenericTest", "ManualTest", "WebTest", "OrderedTest"})
_CPPUNIT = frozenset({"FailedTests", "SuccessfulTests"})
"""Elements of CppUnit, whose root element has the same name."""
_DURATION = Pattern(r"(?:(\d{1,3})\.)?(\d{1,3}):(\d{1,2}):(\d{1,2}(?:\.\d*)?)")
_ABORTED = Pattern(r"(?:test run was aborted|test host process (?:crashed|exited))", ignore_case=True)


def read(stream: BinaryIO, repairs: Repairs, *, most_unfinished: int = MAX_UNFINISHED_CHARACTERS) -> Iterator[Case]:
    """Read the cases of a report, one for each result.

    Raises TooMuch, Refused, or NotXml, which may come after cases, if the report ends too early.
    """
    return walk(stream, repairs, FORMAT, ROOTS, TEXTS, _TrxListener(repairs, UnfinishedBudget(FORMAT, most_unfinished)))


class _TrxResult:
    """An open result."""

    __slots__ = ("attributes", "failure", "output")

    def __init__(self, attributes: dict[str, str]) -> None:
        self.attributes = attributes
        self.failure = DotnetFailure()
        self.output = ""


class _TrxListener:
    """The open results, the results that wait for a definition, and the classes that are known."""

    def __init__(self, repairs: Repairs, budget: UnfinishedBudget) -> None:
        self._repairs = repairs
        self._budget = budget
        self._open: list[_TrxResult] = []
        self._waiting: dict[str, list[Case]] = {}
        self._classes: dict[str, str] = {}
        self._definition = ""
        self._run_info = ""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        if tag in _CPPUNIT:
            raise Refused(texts.USE_CPPUNIT)
        if tag in _RESULTS:
            self._open.append(_TrxResult(attributes))
        elif tag in _DEFINITIONS:
            self._definition = values.name(attributes.get("id"))
        elif tag == "TestMethod" and self._definition:
            self._define(values.name(attributes.get("className")))
        elif tag == "RunInfo":
            self._run_info = attributes.get("outcome", "")

    def end(self, tag: str, text: str) -> Iterable[Case]:
        if tag in _RESULTS and self._open:
            return self._ended(self._open.pop())
        if tag in _DEFINITIONS:
            definition, self._definition = self._definition, ""
            return self._released(definition)
        if tag == "RunInfo":
            self._run_info = ""
        elif tag == "Text" and self._run_info == "Error" and _ABORTED.search(text):
            return (_crashed(text),)
        if self._open:
            result = self._open[-1]
            if tag == "Message" and not result.failure.message:
                result.failure.message = text
            elif tag == "StackTrace":
                result.failure.stack_trace = text
            elif tag == "StdOut":
                result.output = text
        return ()

    def rest(self) -> Iterable[Case]:
        """Return the results whose definitions never came; they have only their names."""
        return [case for cases in self._waiting.values() for case in cases]

    def _define(self, classname: str) -> None:
        if self._definition not in self._classes:
            self._budget.hold(ENTRY + len(self._definition) + len(classname))
            self._classes[self._definition] = classname

    def _ended(self, result: _TrxResult) -> Iterable[Case]:
        definition = values.name(result.attributes.get("testId"))
        case = _case(result, self._repairs)
        classname = self._classes.get(definition)
        if classname is not None:
            return (_of_class(case, classname),)
        if not self._budget.has_room(len(case.text)):
            case = case._replace(text="")
        self._budget.hold(_size(case))
        self._waiting.setdefault(definition, []).append(case)
        return ()

    def _released(self, definition: str) -> Iterable[Case]:
        """Return the results that were waiting for a definition."""
        waiting = self._waiting.pop(definition, ())
        classname = self._classes.get(definition, "")
        for case in waiting:
            self._budget.release(_size(case))
        return [_of_class(case, classname) for case in waiting]


def _size(case: Case) -> int:
    return ENTRY + len(case.name) + len(case.message) + len(case.text)


def _case(result: _TrxResult, repairs: Repairs) -> Case:
    get = result.attributes.get
    name, outcome = values.name(get("testName")), get("outcome", "")
    if not name:
        name = UNNAMED
        repairs.add(Repair.NAMELESS_ENTRIES)
    if outcome not in OUTCOMES:
        raise Refused(texts.TRX_OUTCOME.format(name=name[:SHOWN], outcome=quoted_text(outcome[:SHOWN])))
    status, trouble = OUTCOMES[outcome]
    message, text = result.failure.explain(result.output)
    path, line = result.failure.place() if status in BAD else ("", None)
    if status is Status.SKIPPED:
        # Some adapters write the reason of a skip as the test's output.
        message = message or values.message(text)
        if outcome == "Inconclusive":
            message = f"inconclusive: {message}" if message else "inconclusive"
    elif status is Status.ERRORED:
        message = message or outcome or texts.TRX_NO_OUTCOME
    return Case(
        name=name,
        status=status,
        path=path,
        nodeid=name,
        line=line,
        seconds=_seconds(get("duration", "")),
        trouble=trouble,
        message=message if status is not Status.PASSED else "",
        text=text if status in BAD else "",
    )


def _of_class(case: Case, classname: str) -> Case:
    """Return a case with its class; its name may contain the class already."""
    classname, name = class_and_name(classname, case.name)
    return case._replace(name=name, nodeid=values.name(f"{classname}::{name}")) if classname else case


def _seconds(duration: str) -> float | None:
    """Read a duration as .NET writes it, `[days.]hours:minutes:seconds`."""
    parts = _DURATION.fullmatch(duration)
    if parts is None:
        return None
    days, hours, minutes, seconds = parts.groups()
    return values.seconds(((int(days or 0) * 24 + int(hours)) * 60 + int(minutes)) * 60 + float(seconds))


def _crashed(text: str) -> Case:
    message = values.message(text.strip().partition("\n")[0])
    return Case(
        TEST_RUN, Status.ERRORED, nodeid=TEST_RUN, trouble=Trouble.CRASH, message=message, text=values.text(text)
    )
