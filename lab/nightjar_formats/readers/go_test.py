"""`go test -json`, as test2json writes it: one JSON object per line, for each event of a test or a package.

Each subtest is a case, and so is its parent, which Go fails if a subtest fails. A package that fails without a failed
test (it could not be built, or `TestMain` failed) is one case. Tests that are still running when their package or the
file ends are errored.

Facts that the code relies on (https://pkg.go.dev/cmd/test2json; Go 1.19 and 1.27 wrote the examples in tests/data): the
output of failing builds is plain text before Go 1.24, and events without a package since then. Before Go 1.20 a test
whose output does not end with a line break has no event for its end, only `--- PASS: …` in its output. Without
`test2json -p`, as on devices, no event names a package. Output of other processes may appear on any line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from nightjar_formats.limits import MAX_UNFINISHED_CHARACTERS
from nightjar_formats.model import BAD, Case, Status, Trouble
from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.benchmarks import go
from nightjar_formats.readers.causes import cause_of_text
from nightjar_formats.readers.json.lines import mixed_lines
from nightjar_formats.readers.json.stream import SCALAR, Shape
from nightjar_formats.readers.unfinished import UnfinishedBudget, UnfinishedOutput
from nightjar_formats.refused import Refused

FORMAT = "go-test-json"
ALL_TESTS = "(package)"
"""The package of events that name none."""

KEYS = frozenset(
    {
        "Time",
        "Action",
        "Package",
        "ImportPath",
        "Test",
        "Elapsed",
        "Output",
        "OutputType",
        "FailedBuild",
        "Key",
        "Value",
    }
)
"""The members of an event that are read."""
EVENT: Shape = dict.fromkeys(KEYS, SCALAR)

# `bench`: a benchmark that printed a log and did not fail (https://pkg.go.dev/cmd/test2json).
_ENDS = {"pass": Status.PASSED, "bench": Status.PASSED, "fail": Status.FAILED, "skip": Status.SKIPPED}
_FRAMES = ("=== RUN ", "=== PAUSE ", "=== CONT ", "=== NAME ")
_ENDED = Pattern(r"--- (PASS|FAIL|SKIP|BENCH): (.*) \(([0-9.]+)s\)\s*$")
_PLACE = Pattern(r"\s*([^\s:]+\.go):(\d+):(?:\d+:)? ?(.*)")
_PANICS = ("panic: ", "fatal error: ")
_TIMEOUT = "panic: test timed out after "
_BUILD = Pattern(r"FAIL\t(\S+) \[(build|setup) failed\]\s*$")


def read(stream: BinaryIO, *, most_unfinished: int = MAX_UNFINISHED_CHARACTERS) -> Iterator[Case]:
    """Read the cases of a report, one for each run of each test, in the order in which they ended.

    Raises Refused if there is no event, TooMuch beyond a limit.
    """
    report = _Report(UnfinishedBudget(FORMAT, most_unfinished))
    has_events = False
    for line in mixed_lines(stream, FORMAT, EVENT):
        if isinstance(line, str):
            failed = _BUILD.match(line) if line.startswith("FAIL\t") else None
            if failed is not None:
                has_events = True
                yield _package_case(values.name(failed[1]), Trouble.COLLECTION, texts.GO_NOT_BUILT)
        elif isinstance(action := line.get("Action"), str):
            has_events = True
            yield from report.event(action, line)
    if not has_events:
        raise Refused(texts.GO_NO_EVENT.format(what=FORMAT))
    yield from report.rest()


class _RunningTest:
    """A test that is running: its output, and the line that says why it failed."""

    __slots__ = ("ended", "is_error", "line", "message", "output", "path", "seconds", "timed_out")

    def __init__(self, budget: UnfinishedBudget) -> None:
        self.output = UnfinishedOutput(budget)
        self.path = self.message = ""
        self.line: int | None = None
        self.is_error = self.timed_out = False
        self.ended: Status | None = None
        self.seconds: float | None = None

    def add(self, test: str, output: str, *, is_error: bool) -> None:
        """Add a line of output. Leave out the lines that Go itself writes when a test begins and ends."""
        if output.startswith(_FRAMES):
            return
        if "--- " in output and (ended := _ENDED.search(output)) is not None and ended[2] == test:
            self.ended = _ENDS[ended[1].lower()]
            self.seconds = values.seconds(ended[3])
            output = output[: ended.start()]
            if not output:
                return
        self.output.add(output)
        if output.startswith(_PANICS):
            self.timed_out = self.timed_out or output.startswith(_TIMEOUT)
            self._explain(values.message(output), certain=True)
        elif not self.is_error and ".go:" in output and (place := _PLACE.match(output)) is not None:
            self._explain(values.message(place[3]), certain=is_error)
            self.path, self.line = values.name(place[1]), values.line(place[2])

    def _explain(self, message: str, *, certain: bool) -> None:
        """Store why the test failed: from the first line that is `certain`, else from the last line with a place."""
        if not self.is_error:
            self.message, self.is_error = message, certain


class _Package:
    """A package that is running: its running tests, and its own output."""

    __slots__ = ("failed_below", "has_failed", "output", "tests")

    def __init__(self, budget: UnfinishedBudget) -> None:
        self.tests: dict[str, _RunningTest] = {}
        self.output = UnfinishedOutput(budget)
        self.has_failed = False
        self.failed_below: set[int] = set()
        """Hashes of the names of tests with a failed subtest."""


class _Report:
    """The packages that are running, and the output of builds."""

    def __init__(self, budget: UnfinishedBudget) -> None:
        self._budget = budget
        self._packages: dict[str, _Package] = {}
        self._builds: dict[str, UnfinishedOutput] = {}

    def event(self, action: str, event: Mapping[str, Any]) -> Iterator[Case]:
        """Ingest an event, and yield the cases that it ends."""
        if action == "build-output":
            build = values.name(event.get("ImportPath"))
            if build not in self._builds:
                self._builds[build] = UnfinishedOutput(self._budget)
            self._builds[build].add(_text(event.get("Output")))
            return
        # The packages that need this build have `fail` events of their own, which name it as `FailedBuild`.
        if action == "build-fail":
            return
        name, test = values.name(event.get("Package")), values.name(event.get("Test"))
        package = self._packages.get(name)
        if package is None:
            package = self._packages[name] = _Package(self._budget)
        if test:
            yield from self._test_event(package, name, test, action, event)
        elif action == "output":
            package.output.add(_text(event.get("Output")))
        elif action in _ENDS:
            yield from self._end(name, _ENDS[action], values.name(event.get("FailedBuild")))

    def _test_event(
        self, package: _Package, name: str, test: str, action: str, event: Mapping[str, Any]
    ) -> Iterator[Case]:
        running = package.tests.get(test)
        if running is None:
            running = package.tests[test] = _RunningTest(self._budget)
        if action == "output":
            running.add(test, _text(event.get("Output")), is_error=event.get("OutputType") == "error")
        elif action in _ENDS:
            seconds = values.seconds(event.get("Elapsed"))
            if action == "fail":
                package.has_failed = True
                if not running.message and hash(test) in package.failed_below:
                    running.message = texts.GO_SUBTEST_FAILED
                # A test's name may contain slashes, so the parent's name ends at the first slash or at the last one.
                package.failed_below.update((hash(test.partition("/")[0]), hash(test.rpartition("/")[0])))
            yield _test_case(name, test, running, _ENDS[action], seconds)
            del package.tests[test]

    def _end(self, name: str, status: Status, build: str) -> Iterator[Case]:
        package = self._packages.pop(name)
        output = package.output.finish()
        for test, running in package.tests.items():
            ended = running.ended or (Status.ERRORED if status is Status.FAILED else status)
            case = _test_case(name, test, running, ended, running.seconds)
            package.has_failed |= case.status in BAD
            yield case
        if status is not Status.FAILED or package.has_failed:
            return
        built = self._builds.pop(build).finish() if build in self._builds else ""
        if build or " failed]\n" in output:
            yield _package_case(name, Trouble.COLLECTION, texts.GO_NOT_BUILT, built or output)
        else:
            yield _package_case(name, Trouble.CRASH, texts.GO_FAILED, output)

    def rest(self) -> Iterator[Case]:
        """Yield the tests and packages that are still running at the end of the file."""
        for name, package in self._packages.items():
            for test, running in package.tests.items():
                yield _test_case(name, test, running, running.ended or Status.ERRORED, running.seconds)
            if not package.tests and name:
                yield _package_case(name, Trouble.CRASH, texts.GO_NO_END, package.output.finish())


def _test_case(package: str, test: str, running: _RunningTest, status: Status, seconds: float | None) -> Case:
    output = running.output.finish()
    trouble, message, text = Trouble.NONE, "", ""
    if status is Status.SKIPPED:
        message = running.message or values.message(output)
    elif status in BAD:
        text = values.text(output)
        if running.timed_out:
            status, trouble = Status.FAILED, Trouble.TIMEOUT
        elif status is Status.ERRORED:
            trouble = Trouble.CRASH
        message = running.message or (texts.UNFINISHED if trouble is Trouble.CRASH else cause_of_text(text))
    measurements = go.measurements_in(output) if test.startswith(go.PREFIX) else ()
    is_placed = status in BAD and running.path
    return Case(
        name=test,
        status=status,
        path=_path(package, running.path) if is_placed else "",
        nodeid=f"{package}::{test}" if package else test,
        line=running.line if is_placed else None,
        seconds=seconds,
        trouble=trouble,
        message=message,
        text=text,
        measurements=measurements,
    )


def _package_case(package: str, trouble: Trouble, message: str, output: str = "") -> Case:
    """Return the case that stands for a package."""
    lines = [line for line in output.splitlines() if line.strip() and not line.startswith("# ")]
    place = next((match for line in lines[:100] if (match := _PLACE.match(line)) is not None), None)
    panic = next((line for line in lines[:100] if line.startswith(_PANICS)), "")
    if place is not None and trouble is Trouble.COLLECTION:
        message = values.message(f"{message}: {place[3]}")
    elif panic:
        message = values.message(panic)
    return Case(
        name=package or ALL_TESTS,
        status=Status.ERRORED,
        path=values.name(place[1]) if place is not None else "",
        nodeid=package or ALL_TESTS,
        line=values.line(place[2]) if place is not None else None,
        trouble=trouble,
        message=message,
        text=values.text(output),
    )


def _path(package: str, file: str) -> str:
    """Return a file's path: Go writes only the file's name, and its folder is the end of the package's name."""
    return file if "/" in file or not package else f"{package}/{file}"


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
