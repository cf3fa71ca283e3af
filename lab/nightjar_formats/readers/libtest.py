"""Rust's libtest with `--format json`, and cargo-nextest's `libtest-json`: one JSON object per line, for each event.

`cargo test` runs one binary after another, and its events do not name the binary. If its own lines (standard error) are
in the file too, they name the binary's source file, and test IDs begin with that. nextest names crate and binary in the
name of each test. The ID of a documentation test contains file and item but not the line, which changes with any edit.
Tests that never ended are errored: their process died.

Facts that the code relies on (https://github.com/rust-lang/rust/blob/master/library/test/src/formatters/json.rs and
nextest's `reporter/structured/libtest.rs`): the event `timeout` only says that a test takes long; `exec_time` exists
with `--report-time`, in older versions as a text that ends with "s"; nextest appends `#2` to a name for the second
attempt, and the last attempt counts; output of other processes may appear anywhere, even before an event on its line.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO, NamedTuple

from nightjar_formats.limits import MAX_UNFINISHED_CHARACTERS
from nightjar_formats.measurements import Measurement
from nightjar_formats.model import Case, Status, Trouble
from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.benchmarks.rows import LATENCY, THROUGHPUT
from nightjar_formats.readers.causes import cause
from nightjar_formats.readers.json.lines import mixed_lines, object_of
from nightjar_formats.readers.json.stream import SCALAR, Shape
from nightjar_formats.readers.unfinished import ENTRY, UnfinishedBudget
from nightjar_formats.refused import Refused

FORMAT = "libtest-json"
INTERNAL = "libtest::internal"
EXCEEDED = "time limit exceeded"
DOCTEST = "(doctest)"

EVENT: Shape = dict.fromkeys(
    ("type", "event", "name", "exec_time", "stdout", "message", "reason", "test_count", "median", "mib_per_second"),
    SCALAR,
)
_EVENT_START = '{ "type": "'

_STATUSES = {
    "ok": Status.PASSED,
    "failed": Status.FAILED,
    "ignored": Status.SKIPPED,
    "allowed_failure": Status.XFAILED,
}
_RUNNING = Pattern(r"\s*Running (?:unittests )?(\S+\.rs) \(")
_DOCTESTS = Pattern(r"\s*Doc-tests \S")
_DOCTEST = Pattern(r"(\S+\.\w+) - (.*?) ?\(line (\d+)\)(.*)")
_ATTEMPT = Pattern(r"(.*)#\d+", dot_is_any=True)
_STRESS = Pattern(r"@stress-\d+$")
_PANIC = Pattern(r"panicked at (?:'(?P<before>(?s:.*?))', )?(?P<path>[^\s:']+):(?P<line>\d+):\d+(?::\n(?P<after>.*))?")
"""Rust 1.73 and later write the place before the message."""


class _Identity(NamedTuple):
    """The test that an event is about. `path` and `line` are known if its name contains them."""

    name: str
    nodeid: str
    path: str = ""
    line: int | None = None
    is_retry: bool = False


def read(stream: BinaryIO, *, most_unfinished: int = MAX_UNFINISHED_CHARACTERS) -> Iterator[Case]:
    """Read the cases of a report, one for each test, in the order in which they ended.

    Raises Refused if there is no event, TooMuch beyond a limit.
    """
    report = _Report(UnfinishedBudget(FORMAT, most_unfinished))
    for line in mixed_lines(stream, FORMAT, EVENT):
        if not isinstance(line, str):
            yield from report.event(line)
        elif _EVENT_START in line:
            yield from report.event(_event_within(line))
        else:
            report.log_line(line)
    yield from report.rest()


class _Report:
    """The tests that are running, and how many have ended of those that were announced."""

    def __init__(self, budget: UnfinishedBudget) -> None:
        self._budget = budget
        self._source = ""
        self._running: dict[str, _Identity] = {}
        self._of_nextest: dict[str, _Identity] = {}
        """The running tests of nextest, which runs several binaries at the same time."""
        self._expected = self._ended = 0
        self._has_events = False

    def log_line(self, line: str) -> None:
        """Read the name of the binary that begins to run, if the line has it."""
        if " (" in line and (running := _RUNNING.match(line)) is not None:
            self._source = values.name(running[1])
        elif _DOCTESTS.match(line) is not None:
            self._source = ""

    def event(self, event: Mapping[str, Any]) -> Iterator[Case]:
        """Read an event, and yield the cases that it ends."""
        kind, outcome = event.get("type"), event.get("event")
        if kind == "suite":
            self._has_events = True
            if outcome == "started":
                yield from self._unfinished_cases()
                self._expected += values.count(event.get("test_count"))
        elif kind in ("test", "bench"):
            self._has_events = True
            # A benchmark has one event, with only figures, and libtest writes it only if the benchmark completed.
            yield from self._test(event, "ok" if kind == "bench" else outcome)

    def _test(self, event: Mapping[str, Any], outcome: object) -> Iterator[Case]:
        name = values.name(event.get("name"))
        if not name:
            return
        running = self._of_nextest if "$" in name else self._running
        if outcome == "started":
            running[name] = self._identity(name)
            self._budget.hold(ENTRY + len(name))
        elif isinstance(outcome, str) and outcome in _STATUSES:
            identity = self._identity(name)
            started = name if name in running else _ATTEMPT.sub(lambda match: match[1], name)
            if running.pop(started, None) is not None:
                self._budget.release(ENTRY + len(started))
            self._ended += 1
            yield _case(identity, _STATUSES[outcome], event)

    def _identity(self, name: str) -> _Identity:
        binary, is_nextest, test = name.partition("$")
        if is_nextest:
            attempt = _ATTEMPT.fullmatch(test)
            test = attempt[1] if attempt is not None else test
            return _Identity(test, f"{_STRESS.sub('', binary)}::{test}", is_retry=attempt is not None)
        doctest = _DOCTEST.fullmatch(name) if "(line " in name else None
        if doctest is not None:
            doctest_name = " ".join(part for part in (doctest[2] + doctest[4], DOCTEST) if part)
            return _Identity(doctest_name, f"{doctest[1]}::{doctest_name}", doctest[1], values.line(doctest[3]))
        return _Identity(name, f"{self._source}::{name}" if self._source else name)

    def _unfinished_cases(self) -> Iterator[Case]:
        """Yield the tests that were still running when their binary ended."""
        for name, identity in self._running.items():
            self._budget.release(ENTRY + len(name))
            self._ended += 1
            yield _unfinished_case(identity)
        self._running.clear()

    def rest(self) -> Iterator[Case]:
        """Yield the tests that are running at the end of the file, or a case that says that some are missing."""
        if not self._has_events:
            raise Refused(texts.RUST_NO_EVENT.format(what=FORMAT))
        unfinished = (*self._running.values(), *self._of_nextest.values())
        yield from map(_unfinished_case, unfinished)
        if not unfinished and self._ended < self._expected:
            message = texts.RUST_TOO_FEW.format(ended=self._ended, expected=self._expected)
            yield Case(INTERNAL, Status.ERRORED, nodeid=INTERNAL, trouble=Trouble.CRASH, message=message)


def _case(identity: _Identity, status: Status, event: Mapping[str, Any]) -> Case:
    output, message, trouble = event.get("stdout"), values.message(event.get("message")), Trouble.NONE
    path, line, text = identity.path, identity.line, ""
    if status is Status.FAILED:
        text = values.text(output)
        panic = _PANIC.search(text)
        if panic is not None and not identity.path:
            path, line = panic["path"], values.line(panic["line"])
        if event.get("reason") == EXCEEDED:
            trouble, message = Trouble.TIMEOUT, message or EXCEEDED
        message = message or _reason(text, panic["after"] or panic["before"] if panic is not None else None)
    seconds = event.get("exec_time")
    return Case(
        name=identity.name,
        status=status,
        path=path,
        nodeid=identity.nodeid,
        line=line,
        seconds=values.seconds(seconds.removesuffix("s") if isinstance(seconds, str) else seconds),
        flaky=identity.is_retry and status is Status.PASSED,
        trouble=trouble,
        message=message,
        text=text,
        measurements=_measurements(event) if event.get("type") == "bench" else (),
    )


def _measurements(event: Mapping[str, Any]) -> tuple[Measurement, ...]:
    """Return the figures of a benchmark. libtest divides by 10^6, whatever the name of `mib_per_second` says."""
    numbers = (
        (LATENCY._replace(unit="ns"), values.number(event.get("median")), 1.0),
        (THROUGHPUT, values.number(event.get("mib_per_second")), 1e6),
    )
    return tuple(
        Measurement(metric.name, number * factor, metric.unit, metric.better)
        for metric, number, factor in numbers
        if number is not None
    )


def _reason(text: str, panic: str | None) -> str:
    """Return the message of a panic, or else the line that says why of the output."""
    return cause(values.message(panic), text, is_log=True)


def _unfinished_case(identity: _Identity) -> Case:
    return Case(
        name=identity.name,
        status=Status.ERRORED,
        path=identity.path,
        nodeid=identity.nodeid,
        line=identity.line,
        trouble=Trouble.CRASH,
        message=texts.UNFINISHED,
    )


def _event_within(line: str) -> Mapping[str, Any]:
    """Return the event after the output of another process on the same line; an empty mapping if it is not JSON."""
    event = object_of(line[line.index(_EVENT_START) :].encode("utf-8", "replace"))
    return event if not isinstance(event, str) else {}
