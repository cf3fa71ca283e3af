"""TAP 12 to 14, which Perl's tests, node's test runner, tape, bats and many others write.

https://testanything.org/tap-version-14-specification.html. Comments and a block of YAML after a result say why the
test failed. In the output of `prove -v`, the IDs of tests begin with the name of their file. A `todo` test is expected
to fail.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from nightjar_formats.model import BAD, Case, Status, Trouble
from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import texts, values
from nightjar_formats.readers.fields import Clip
from nightjar_formats.readers.tap_levels import UNNAMED, TapLevels
from nightjar_formats.readers.tap_lines import (
    ResultLine,
    bail_out_reason,
    is_version,
    plan_line,
    result_line,
    subtest_name,
)
from nightjar_formats.readers.tap_text import text_lines
from nightjar_formats.readers.tap_yaml import read_diagnostics
from nightjar_formats.refused import Refused

WHAT = "tap"

_PROVE = Pattern(r"(\S*[./]\S*) \.{2,} ?(?:skipped: (.*))?$")
_PERL_PLACE = Pattern(r"\s+at (\S.*) line (\d{1,9})\.?$")
_BATS_PLACE = Pattern(r"in test file ([^,\n]+), line (\d{1,9})\b")
_GLIB_ERROR = " - ERROR:"
_PERL_TITLE = Pattern(r"\s+Failed (?:\(TODO\) )?test(?: '.*'| \(.*\))?$")
_SKIPPED_FILE = "(all tests)"


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
    result = result_line(line)
    return is_version(line) or plan_line(line) is not None or (result is not None and result.number is not None)


class _TapReport:
    """The open levels of a report, and its last result: the next lines may belong to that."""

    def __init__(self) -> None:
        self._levels = TapLevels(WHAT)
        self._last: _TapResult | None = None
        self._has_tap = self._is_of_prove = False

    def line(self, line: str) -> Iterator[Case]:
        """Read a line, and yield the cases that end with it."""
        body = line.lstrip(" ")
        indent = len(line) - len(body)
        last = self._last
        if last is not None and last.reads(body, indent):
            return
        if (result := result_line(body)) is not None:
            if self._is_of_prove and body in ("ok", "not ok"):
                return  # prove's own verdict on a file
            yield from self._flush()
            self._has_tap = True
            self._last = _TapResult(indent, self._levels.number(indent, result.number), result)
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
            self._has_tap = True
            yield from self._levels.begin(indent)
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
        self._is_of_prove = True
        yield from self._levels.begin_file(name)
        if skipped is not None:
            self._has_tap = True
            message = values.message(skipped)
            yield Case(_SKIPPED_FILE, Status.SKIPPED, nodeid=f"{name}::{_SKIPPED_FILE}", message=message)

    def _flush(self) -> Iterator[Case]:
        """Yield the case of the last result, with the lines that followed it."""
        last, self._last = self._last, None
        if last is not None:
            yield from self._levels.end(last.indent, last.case())

    def rest(self) -> Iterator[Case]:
        """Yield the cases that are left at the end of the report."""
        if not self._has_tap:
            raise Refused(texts.TAP_NO_TAP.format(what=WHAT))
        yield from self._flush()
        yield from self._levels.rest()


class _TapResult:
    """A result with the comments and the block of YAML after it."""

    __slots__ = ("_block_indent", "_comments", "_has_comments", "_number", "_result", "_yaml", "indent")

    def __init__(self, indent: int, number: int, result: ResultLine) -> None:
        self.indent = indent
        self._number = number
        self._result = result
        self._comments = Clip()
        self._has_comments = False
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
            self._comments.add(body[1:] + "\n")
            self._has_comments = True
            return True
        return False

    @property
    def name(self) -> str:
        """The test's name, without the failed assertion that GLib appends."""
        return values.name(self._result.name.partition(_GLIB_ERROR)[0]) or UNNAMED.format(number=self._number)

    def case(self) -> Case:
        """Return the case."""
        result, name = self._result, self.name
        status, trouble = result.verdict()
        why = result.name.partition(_GLIB_ERROR)[2]
        block = self._yaml.text() if self._yaml is not None else ""
        found = read_diagnostics(block)
        message, path, line, text = values.message(result.reason or why), "", None, ""
        if status in BAD:
            comments = self._comments.text() if self._has_comments else ""
            text = values.text("\n".join(part.rstrip("\n") for part in (comments, block) if part))
            path, line = (found.path, found.line) if found.path else _place(text)
            message = message or found.message or _perl_message(comments)
            if found.is_timeout:
                trouble = Trouble.TIMEOUT
        return Case(
            name=name,
            status=status,
            path=path,
            nodeid=name,
            line=line,
            seconds=result.seconds if result.seconds is not None else found.seconds,
            trouble=trouble,
            message=message,
            text=text,
        )


def _place(text: str) -> tuple[str, int | None]:
    """Return the file and line at which a test failed, according to Perl's Test::More or bats."""
    for line in text.splitlines()[:10]:
        place = _PERL_PLACE.fullmatch(line) if line.startswith(" ") else None
        place = place or (_BATS_PLACE.search(line) if "in test file " in line else None)
        if place is not None:
            return values.name(place[1]), values.line(place[2])
    return "", None


def _perl_message(comments: str) -> str:
    """Return the content of comments, without the test's name and place."""
    lines = comments.splitlines()[:40]
    return values.message(
        "\n".join(line for line in lines if not (_PERL_TITLE.fullmatch(line) or _PERL_PLACE.fullmatch(line)))
    ).strip()
