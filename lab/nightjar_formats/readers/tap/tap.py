"""TAP 12 to 14, which Perl's tests, node's test runner, tape, bats and many others write.

https://testanything.org/tap-version-14-specification.html. Comments and a block of YAML after a result say why the
test failed. In the output of `prove -v`, the IDs of tests begin with the name of their file. A `todo` test is expected
to fail. Outcomes, durations and comments after a name are no part of it, and summaries explain no failure.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from nightjar_formats.model import BAD, Case, Status, Trouble
from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.causes import cause, cause_line, cause_of_text, is_summary
from nightjar_formats.readers.fields import Clip
from nightjar_formats.readers.tap.diagnostics import read_diagnostics
from nightjar_formats.readers.tap.levels import UNNAMED, TapLevels
from nightjar_formats.readers.tap.lines import (
    ResultLine,
    bail_out_reason,
    is_version,
    plan_line,
    result_line,
    subtest_name,
)
from nightjar_formats.readers.tap.log_prefixes import bare_line, text_lines
from nightjar_formats.refused import Refused

FORMAT = "tap"

_PROVE = Pattern(r"(\S*[./]\S*|\S.*\.t) \.{2,} ?(?:skipped: (.*))?")
_VERDICT = Pattern(r"(?:not )?ok(?:\s{2,}<?\d{1,9} m?s(?: \(.*CPU\))?)?")
"""prove's own verdict on a file, with the time that it took: `ok      131 ms ( 0.00 usr  0.00 sys + … CPU)`."""
_DUBIOUS = "Dubious, "
"""The beginning of prove's line on a file whose process failed."""
_PERL_PLACE = Pattern(r"\s+at (\S.*) line (\d{1,9})\.?$")
_C_PLACE = Pattern(r"\s+Failed test \((\S+?):(?:.* )?at line (\d{1,9})\)")
_BATS_PLACE = Pattern(r"in test file ([^,\n]+), line (\d{1,9})\b")
_PERL_TITLE = Pattern(r"\s+Failed (?:\(TODO\) )?test(?: \d+:)?(?: '.*'| \".*\"| \(.*\))?$")
_KEY = Pattern(r"^\s*[\w-]+:.*$", by_line=True)
_SKIPPED_FILE, _EXIT_STATUS = "(all tests)", "(exit status)"
MAX_COMMENTS = 200
"""The most lines of comments that are searched for a reason."""
_SIGNALS, _TIMEOUTS = ("signal", "Segmentation fault"), ("timed out", "Test timeout expired")

CRITERION = "Criterion "
"""The beginning of the comment with which a report of Criterion begins."""

# Check, all of whose descriptions end with an outcome: `tests/check_dma.c:Core:copies: Passed`
# (`tap_lfun` in https://github.com/libcheck/check/blob/master/src/check_log.c).
_CHECK = Pattern(r"((?:[A-Za-z]:)?[^:]+\.[A-Za-z]\w{0,3}):([^:]*):([A-Za-z_]\w*): ?(.*)")
_PASSED = "Passed"
# PHPUnit before version 6: `not ok 2 - Failure: DmaTest::testCopies`.
_PHPUNIT = Pattern(r"(?:Failure|Error|Warning|Risky): (\S+::.*)")
# GLib, whose names are paths: `not ok 5 /dma/copies - ERROR:../tests/dma.c:12:copies: assertion failed (3 == 4)`.
_GLIB_ERROR = " - ERROR:"
# Criterion: `not ok - dma::copies unexpected signal after dma.c:14`, `ok - dma::fills a description (0.00s)`
# (https://github.com/Snaipe/Criterion/blob/master/src/io/tap.c).
_CRITERION = Pattern(r"(\S+::\S+)\s*(.*)")
_ABORTED = Pattern(r"unexpected signal after |timed out\b")


def read(stream: BinaryIO) -> Iterator[Case]:
    """Read the cases of a report, one for each result.

    If a report ends before its plan is complete, the plan and the parents of its last tests are errored. Raises Refused
    if it is not TAP, TooMuch beyond a limit.
    """
    report = _TapReport()
    for line in text_lines(stream):
        yield from report.line(line)
    yield from report.rest()


def is_tap(line: str) -> bool:
    """Say whether a line shows that a text is TAP and not a log: a version, a plan, or a result with a number."""
    line = bare_line(line)
    result = result_line(line)
    return is_version(line) or plan_line(line) is not None or (result is not None and result.number is not None)


class _TapReport:
    """The open levels of a report, and its last result: the next lines may belong to that."""

    def __init__(self) -> None:
        self._levels = TapLevels(FORMAT)
        self._last: _TapResult | None = None
        self._has_tap = self._is_of_prove = False
        self._has_comments = self._is_criterion = False
        self._has_failed = False
        """Whether a test of the current file failed."""
        self._dubious = ""
        """What prove says about the process of the current file, if it failed."""

    def line(self, line: str) -> Iterator[Case]:
        """Read a line, and yield the cases that end with it."""
        return self._watched(self._read(line))

    def _watched(self, cases: Iterator[Case]) -> Iterator[Case]:
        for case in cases:
            self._has_failed = self._has_failed or case.status in BAD
            yield case

    def _read(self, line: str) -> Iterator[Case]:
        body = line.lstrip(" ")
        indent = len(line) - len(body)
        last = self._last
        if last is not None and last.reads(body, indent):
            return
        if self._is_of_prove and not indent and _VERDICT.fullmatch(body) is not None:
            yield from self._flush()
        elif (result := result_line(body, has_comments=self._has_comments)) is not None:
            yield from self._flush()
            self._has_tap = True
            number = self._levels.number(indent, result.number)
            self._last = _TapResult(indent, number, result, is_criterion=self._is_criterion)
            if result.opens:
                yield from self._begin_buffered(indent)
        elif body == "{" and last is not None and last.indent == indent:
            yield from self._begin_buffered(indent)
        elif body == "}":
            yield from self._flush()
            yield from self._levels.end_buffered(indent)
        elif (plan := plan_line(body)) is not None:
            yield from self._flush()
            self._has_tap = True
            yield from self._levels.plan(indent, plan)
        elif (name := subtest_name(body)) is not None:
            yield from self._flush()
            yield from self._levels.name_holder(indent, name)
        elif (reason := bail_out_reason(body)) is not None:
            yield from self._flush()
            self._has_tap = True
            yield from self._levels.bail_out(indent, reason)
        elif is_version(body):
            yield from self._flush()
            self._has_tap = self._has_comments = True
            yield from self._levels.begin(indent)
        elif body.startswith("# " + CRITERION):
            self._is_criterion = True
        elif self._is_of_prove and body.startswith(_DUBIOUS):
            yield from self._flush()
            self._dubious = body
        elif not indent and " .." in body and (file := _PROVE.fullmatch(body)) is not None:
            yield from self._flush()
            yield from self._begin_file(values.name(file[1]), file[2])

    def _begin_buffered(self, indent: int) -> Iterator[Case]:
        """Begin the subtests of a test whose result comes before them, as node-tap writes them."""
        if self._last is not None:
            name = self._last.name
            yield from self._flush()
            self._levels.begin_buffered(indent, name)

    def _begin_file(self, name: str, skipped: str | None) -> Iterator[Case]:
        yield from self._end_file()
        self._is_of_prove, self._has_failed = True, False
        yield from self._levels.begin_file(name)
        if skipped is not None:
            self._has_tap = True
            message = values.message(skipped)
            yield Case(_SKIPPED_FILE, Status.SKIPPED, nodeid=f"{name}::{_SKIPPED_FILE}", message=message)

    def _end_file(self) -> Iterator[Case]:
        """Yield a case if the process of a file failed and no test's case shows that."""
        yield from self._watched(self._levels.rest())
        dubious, self._dubious = self._dubious, ""
        if dubious and not self._has_failed:
            message = values.message(dubious.removeprefix(_DUBIOUS))
            case = Case(_EXIT_STATUS, Status.ERRORED, nodeid=_EXIT_STATUS, trouble=Trouble.CRASH, message=message)
            yield self._levels.prefixed(case)

    def _flush(self) -> Iterator[Case]:
        """Yield the case of the last result, with the lines that followed it."""
        last, self._last = self._last, None
        if last is not None:
            yield from self._levels.end(last.indent, last.case())

    def rest(self) -> Iterator[Case]:
        """Yield the cases that are left at the end of the report."""
        if not self._has_tap:
            raise Refused(texts.TAP_NO_TAP.format(what=FORMAT))
        yield from self._watched(self._flush())
        yield from self._end_file()


class _TapResult:
    """A result with the comments, the indented lines and the block of YAML after it."""

    __slots__ = (
        "_block_indent", "_comments", "_has_comments", "_lines", "_name", "_result", "_takes_lines", "_yaml", "indent",
        "name",
    )  # fmt: skip

    def __init__(self, indent: int, number: int, result: ResultLine, *, is_criterion: bool) -> None:
        self.indent = indent
        self._result = result
        self._name = tap_name(result, is_criterion=is_criterion)
        self.name = values.name(self._name.name) or UNNAMED.format(number=number)
        self._comments = Clip()
        self._has_comments = False
        self._lines = Clip()
        self._takes_lines = not result.is_ok
        """Whether indented lines belong to the result: until another line comes."""
        self._yaml: Clip | None = None
        self._block_indent: int | None = None

    def reads(self, body: str, indent: int) -> bool:
        """Add a line if it belongs to the result; return whether it does."""
        if self._block_indent is not None and self._yaml is not None:
            if indent == self._block_indent and body == "...":
                self._block_indent = None
                return True
            if indent >= self._block_indent or not body:
                self._yaml.add(" " * (indent - self._block_indent) + body + "\n")
                return True
            self._block_indent = None  # the block has no end
        elif body == "---" and indent > self.indent and self._yaml is None:
            self._yaml, self._block_indent = Clip(), indent
            return True
        if body.startswith("#") and subtest_name(body) is None:
            if not is_summary(body):
                self._comments.add(body[1:] + "\n")
                self._has_comments = True
            return True
        if self._takes_lines and body:
            self._takes_lines = indent > self.indent and not _is_of_report(body)
            if self._takes_lines:
                self._lines.add(body + "\n")
        return self._takes_lines

    def case(self) -> Case:
        """Return the case."""
        result, name = self._result, self.name
        status, trouble = result.verdict()
        block = self._yaml.text() if self._yaml is not None else ""
        diagnostics = read_diagnostics(block)
        message, path, line, text = values.message(result.reason or self._name.reason), "", None, ""
        if status in BAD:
            comments = self._comments.text() if self._has_comments else ""
            lines = self._lines.text()
            text = values.text("\n".join(part.rstrip("\n") for part in (comments, block, lines) if part))
            path, line = (diagnostics.path, diagnostics.line) if diagnostics.path else _place(text)
            message = message or diagnostics.message or values.message(result.data)
            message = cause(message, f"{_reason(comments)}\n{lines}", is_log=True)
            message = message or cause_line(_KEY.sub("", block), is_log=True)
            if diagnostics.is_timeout or message.startswith(_TIMEOUTS):
                trouble = Trouble.TIMEOUT
            elif self._name.reason and any(word in self._name.reason for word in _SIGNALS):
                status, trouble = Status.ERRORED, Trouble.CRASH
        return Case(
            name=name,
            status=status,
            path=path or self._name.path,
            nodeid=f"{self._name.path}::{name}" if self._name.path else name,
            line=line,
            seconds=result.seconds if result.seconds is not None else diagnostics.seconds,
            trouble=trouble,
            message=message,
            text=text,
        )


def _is_of_report(body: str) -> bool:
    """Say whether a line has a meaning in TAP."""
    return (
        result_line(body) is not None
        or plan_line(body) is not None
        or subtest_name(body) is not None
        or bail_out_reason(body) is not None
        or is_version(body)
        or body in ("{", "}")
    )


def _place(text: str) -> tuple[str, int | None]:
    """Return the file and line at which a test failed, according to Perl's Test::More, libtap or bats."""
    for line in text.splitlines()[:10]:
        place = (_PERL_PLACE.fullmatch(line) or _C_PLACE.fullmatch(line)) if line.startswith(" ") else None
        place = place or (_BATS_PLACE.search(line) if "in test file " in line else None)
        if place is not None:
            return values.name(place[1]), values.line(place[2])
    return "", None


def _reason(comments: str) -> str:
    """Return the content of comments on one line, without name and place; of many, the line that says why."""
    lines = comments.splitlines()[:MAX_COMMENTS]
    return cause_of_text(
        "\n".join(line for line in lines if not (_PERL_TITLE.fullmatch(line) or _PERL_PLACE.fullmatch(line)))
    )


class TapName(NamedTuple):
    """A test's name without its outcome, the file that is part of it, and the reason that was appended."""

    name: str
    path: str = ""
    reason: str = ""


def tap_name(result: ResultLine, *, is_criterion: bool = False) -> TapName:
    """Return the name of a result's test, the same whether it passed or failed.

    >>> tap_name(ResultLine(True, 1, "check_dma.c:Core:copies: Passed"))
    TapName(name='Core::copies', path='check_dma.c', reason='')
    """
    description = result.name
    if is_criterion and (match := _CRITERION.fullmatch(description)) is not None:
        return TapName(match[1], reason=match[2] if _ABORTED.match(match[2]) is not None else "")
    if ":" in description and (match := _CHECK.fullmatch(description)) is not None:
        if result.is_ok and match[4] == _PASSED:
            return TapName(f"{match[2]}::{match[3]}", match[1])
        if not result.is_ok:
            return TapName(f"{match[2]}::{match[3]}", match[1], match[4])
    if result.is_ok:
        return TapName(description)
    if (match := _PHPUNIT.fullmatch(description)) is not None:
        return TapName(match[1])
    separator = " - " if description.startswith("/") and not result.is_dashed else _GLIB_ERROR
    name, _, reason = description.partition(separator)
    return TapName(name.rstrip(), reason=reason.removeprefix("ERROR:"))
