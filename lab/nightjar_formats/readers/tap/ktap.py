"""KTAP, which tests of the Linux kernel write: KUnit, kselftest, and modules that test drivers.

https://docs.kernel.org/dev-tools/ktap.html. The report may be the log of a console, with a time before each line and
lines of the kernel between. Subtests are indented, or have the prefix `# ` as kselftest's runner writes it; they need
neither a version nor a plan. The lines between two results are what the kernel logged while the test of the second one
ran.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from nightjar_formats.model import BAD, Case
from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.causes import cause, is_summary
from nightjar_formats.readers.fields import Clip
from nightjar_formats.readers.tap.levels import UNNAMED, TapLevels
from nightjar_formats.readers.tap.lines import (
    ResultLine,
    bail_out_reason,
    is_version,
    plan_line,
    result_line,
    subtest_name,
)
from nightjar_formats.readers.tap.log_prefixes import CONSOLE, bare_line, prefix_length, text_lines, with_spaces
from nightjar_formats.refused import Refused

FORMAT = "ktap"

_CONSOLE = Pattern(CONSOLE)
_SELFTEST = "# selftests: "
_NESTED = Pattern(r"K?TAP version \d|1\.\.\d|ok \d|not ok \d|Bail out!")
_FAILED_AT = Pattern(r"(?:EXPECTATION|ASSERTION) FAILED at (\S+):(\d{1,9})[ \t]*$", by_line=True)
_HARNESS = Pattern(r"^[# ]*([\w./-]+\.[ch]\w*):(\d{1,9}):[\w.-]+:(.*)$", by_line=True)


def read(stream: BinaryIO) -> Iterator[Case]:
    """Read the cases of a report, one for each result.

    If a report ends before its plan is complete, the plan and the parents of its last tests are errored. Raises Refused
    if it is not KTAP, TooMuch beyond a limit.
    """
    report = _KtapReport()
    for line in text_lines(stream):
        yield from report.line(line)
    yield from report.rest()


def is_ktap(line: str) -> bool:
    """Say whether a line occurs only in reports of the kernel."""
    bare = bare_line(line)
    return (
        bare.strip().startswith(("KTAP version ", _SELFTEST))
        or (bare.startswith("TAP version ") and _CONSOLE.search(line[: prefix_length(line)]) is not None)
        or (" FAILED at " in bare and _FAILED_AT.search(bare) is not None)
    )


class _KtapReport:
    """The open levels of a report, and the lines since the last result."""

    def __init__(self) -> None:
        self._levels = TapLevels(FORMAT)
        self._log = Clip()
        self._has_log = self._has_ktap = False
        self._hashes = 0
        """How many `# ` precede the lines of subtests."""
        self._unannounced: int | None = None
        """How many results the open test of kselftest has that announced no subtests; None outside of such tests."""

    def line(self, line: str) -> Iterator[Case]:
        """Read a line, and yield the cases that end with it."""
        body, indent = self._unindented(line)
        if (result := result_line(body, is_ktap=True)) is not None and result.number is not None:
            self._has_ktap = True
            self._hashes = min(self._hashes, _hashes(line))
            if not _hashes(line):
                self._unannounced = None
            case = self._case(result, self._levels.number(indent, result.number))
            yield from self._levels.end(indent, case)
        elif (plan := plan_line(body)) is not None:
            self._has_ktap = True
            yield from self._levels.plan(indent, plan)
        elif (name := subtest_name(body)) is not None:
            yield from self._levels.name_holder(indent, name)
        elif body.startswith(_SELFTEST):
            self._begin_log()
            self._unannounced = 0
            yield from self._levels.name_holder(indent, body.removeprefix("# ").strip())
        elif (reason := bail_out_reason(body)) is not None:
            self._has_ktap = True
            yield from self._levels.bail_out(indent, reason)
        elif is_version(body):
            self._has_ktap = True
            self._begin_log()
            yield from self._levels.begin(indent)
        elif body and not is_summary(body.lstrip("# ")):
            self._log.add(f"{line}\n")
            self._has_log = True

    def _unindented(self, line: str) -> tuple[str, int]:
        """Return a line's content and its indentation; each `# ` that indents a subtest counts as two spaces."""
        body = line.lstrip(" ")
        indent = len(line) - len(body)
        if not body.startswith("# "):
            return body, indent
        inner = body
        depth = 0
        while inner.startswith("# "):
            inner = inner[2:]
            depth += 1
        inner = with_spaces(inner)
        stripped = inner.lstrip(" ")
        spaces = len(inner) - len(stripped)
        if is_version(stripped) or plan_line(stripped) is not None:
            self._hashes = max(self._hashes, depth)
        elif (stripped.startswith("selftests: ") and depth > 1) or inner.startswith("Subtest"):
            return body[2 * (depth - 1) :], indent + 2 * (depth - 1)
        if (depth <= self._hashes and _NESTED.match(stripped) is not None) or self._counts_on(stripped, depth):
            return stripped, indent + 2 * depth + spaces
        return body, indent

    def _counts_on(self, body: str, depth: int) -> bool:
        """Say whether a line behind one hash is the next result of a test that announced none.

        Many tests of kselftest write results without a version or a plan. Another line of their logs may look like a
        result, but not with the next number.
        """
        if depth > 1 or self._unannounced is None:
            return False
        result = result_line(body, is_ktap=True)
        if result is None or result.number not in (1, self._unannounced + 1):
            return False
        self._unannounced = result.number
        return True

    def _begin_log(self) -> None:
        self._log, self._has_log = Clip(), False

    def _case(self, result: ResultLine, number: int) -> Case:
        """Return the case of a result. A directive in the place of the name, as kselftest writes it, is the name."""
        status, trouble = result.verdict()
        name, message = values.name(result.name), values.message(result.reason or result.data)
        is_reason = bool(result.directive)
        if not name and result.reason:
            name, message = values.name(result.reason), ""
        log = self._log.text() if self._has_log and status in BAD else ""
        self._begin_log()
        path, line, failure_message = _place(log)
        if not failure_message and not is_reason:
            failure_message = cause(message, "\n".join(part.lstrip("# ") for part in log.splitlines()), is_log=True)
        name = name or UNNAMED.format(number=number)
        return Case(
            name=name,
            status=status,
            path=path,
            nodeid=name,
            line=line,
            trouble=trouble,
            message=message if not failure_message or (is_reason and message) else failure_message,
            text=values.text(log.rstrip("\n")),
        )

    def rest(self) -> Iterator[Case]:
        """Yield the cases that are left at the end of the report."""
        if not self._has_ktap:
            raise Refused(texts.TAP_NO_KTAP.format(what=FORMAT))
        yield from self._levels.rest()


def _hashes(line: str) -> int:
    return (len(line) - len(line.lstrip("# "))) // 2


def _place(log: str) -> tuple[str, int | None, str]:
    """Return file, line and reason of the first expectation of KUnit or kselftest's harness that failed."""
    failed = _FAILED_AT.search(log) if " FAILED at " in log else None
    if failed is not None:
        reason_lines = [line.strip().removeprefix("# ").strip() for line in log[failed.end() :].splitlines()[1:6]]
        end = next(
            (index for index, line in enumerate(reason_lines) if not line or " FAILED at " in line), len(reason_lines)
        )
        return values.name(failed[1]), values.line(failed[2]), values.message("\n".join(reason_lines[:end]))
    harness_failure = _HARNESS.search(log)
    if harness_failure is not None:
        return values.name(harness_failure[1]), values.line(harness_failure[2]), values.message(harness_failure[3])
    return "", None, ""
