"""Read JUnit XML: a stream of bytes in, test cases out, with limits on everything, because the input is not trusted.

We measured expat and lxml. For the same work, expat's callbacks are a tenth faster, report the line of a fault, and let
us limit the length of a token. lxml keeps every name that it has ever seen in a dictionary of the thread, so one
hostile file would use up the memory for all later ones.

Faults that need not lose a run are repaired before expat sees them (`XmlText`), and text after the document is ignored.

This module adds limits that expat lacks. A DOCTYPE is refused at once, and with it every entity and every file that it
could name. A token (a tag, an attribute, a comment) may have at most `MAX_TOKEN_BYTES`, which also keeps expat before
2.6 from scanning it again and again (CVE-2023-52425). Depth, attributes, names and elements are counted.

Seconds for a report of 300,000 cases (69 MB): expat with empty callbacks 0.53 to 0.65, lxml with an empty target parser
0.44 to 0.49, lxml's `XMLPullParser` filtered by tag 0.67 to 0.87, its `iterparse` 0.73 to 1.01; with the same work,
which makes cases, lxml's target parser 0.85, expat 0.76. lxml accepted a file with three million different names and
grew by 114 MB. On the other hand, lxml comes with protection against hostile files, and this reader needs tests of its
own: each attack in `tests/results/formats/test_junit_attacks.py` ends in a refusal within a second and 100 MB.
Distributions patch expat before 2.6 without a new version number, so the tests check its behavior.
"""

from __future__ import annotations

import re  # noqa: TID251  # bytes
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import BinaryIO, NamedTuple, NoReturn, Optional
from xml.parsers import expat

from nightjar_formats.limits import (
    MAX_ATTRIBUTES,
    MAX_DEPTH,
    MAX_ELEMENTS,
    MAX_MEASUREMENTS,
    MAX_PARTS,
    MAX_RAW_NAME,
    MAX_TOKEN_BYTES,
    MAX_XML_NAMES,
    NotXml,
)
from nightjar_formats.measurements import PROPERTY, of_properties
from nightjar_formats.model import Case
from nightjar_formats.readers import texts
from nightjar_formats.readers.fields import Clip
from nightjar_formats.readers.junit.case_runs import (
    MARK,
    CaseOrRun,
    CaseRun,
    Rows,
    rows_at,
    skip_of,
    spans,
)
from nightjar_formats.readers.junit.names import PLACEHOLDERS, suite_path
from nightjar_formats.readers.repairs import UNNAMED, Repair, Repairs
from nightjar_formats.readers.xml.foreign import MAX_TAG_SHOWN, foreign_refusal, is_like_test
from nightjar_formats.readers.xml.parser import CHUNK_BYTES, xml_parser
from nightjar_formats.readers.xml.text import XmlText
from nightjar_formats.refused import Refused, TooMuch

DOCTYPE_SHOWN = 32
"""Bytes that are searched for a lower-case doctype, which HTML allows and XML does not."""
SUITES = frozenset({"testsuites", "testsuite"})
OUTCOMES = frozenset(
    {"failure", "error", "skipped", "flakyFailure", "flakyError", "rerunFailure", "rerunError"},
)
LOGS = frozenset({"system-out", "system-err"})
SAYS_NOTHING = frozenset({"", "collection skipped"})
"""Messages of skips that do not say why: the reason is in the text."""


class SuiteElement(NamedTuple):
    """A `<testsuite>`: its attributes, those of the root, and its path, the names of it and the suites around it.

    `number` counts the suites of the file, from 1; `file` is the file that it or a suite around it names, or "".
    """

    attributes: dict[str, str]
    root: dict[str, str]
    path: str
    number: int = 0
    file: str = ""


class Part(NamedTuple):
    """A child of a case: one of `OUTCOMES`, or one of `LOGS` after an outcome. Its text is cut to head and tail."""

    tag: str
    attributes: dict[str, str]
    text: str


Make = Callable[[dict[str, str], Sequence[Part], SuiteElement], Optional[Case]]
"""Makes a case from the attributes of a `<testcase>`, from its children that say how it ended (in order, at most
`MAX_PARTS`), and from its suite. Returns None if it is not a test."""

Choose = Callable[[SuiteElement], Make]
"""Chooses the function that makes the cases of a suite."""


SECOND_DOCUMENT = re.compile(rb"<(?:\?xml|testsuites?)[\s/>]")  # noqa: TID251
LONGEST_TAG = 16
"""The most bytes of such a beginning, which may be split between two chunks."""


def cases(stream: BinaryIO, choose: Choose, repairs: Repairs | None = None) -> Iterator[CaseOrRun]:
    """Read a JUnit report piece by piece; `repairs` collects what had to be repaired.

    Raises `NotXml` if it is not XML or ends too early, possibly after it yielded cases; `TooMuch` beyond a limit;
    `Refused` for other XML; and what `choose` and the function that it returns raise.
    """
    repairs = repairs or Repairs()
    text = XmlText(stream, repairs)
    reader = _Reader(choose, repairs)
    # With each chunk, expat scans the unfinished token again, so chunks are large and grow with the token.
    while chunk := text.read(max(CHUNK_BYTES, reader.unfinished)):
        yield from reader.feed(chunk)
    reader.close()


# Not `Part(...)`: the constructor of a NamedTuple is one call more for each of 300,000 parts.
_new = tuple.__new__

NO_PARTS: tuple[Part, ...] = ()


class _Reader:
    """The callbacks for one document, with the current position and the completed cases."""

    __slots__ = (
        "_after", "_case", "_case_depth", "_choose", "_clip", "_depth", "_done", "_elements", "_end_of_chunk", "_fed",
        "_foreign", "_has_cases",
        "_in_cdata", "_make", "_parser", "_part", "_parts", "_passed_over", "_properties",
        "_repairs", "_root", "_suite",
        "_suite_count", "_suites", "_templates",
    )  # fmt: skip

    def __init__(self, choose: Choose, repairs: Repairs) -> None:
        self._repairs = repairs
        self._after = 0  # the current line of the text after the document, once there is such text
        self._end_of_chunk = b""
        self._depth = self._elements = self._fed = self._case_depth = 0
        self._root: dict[str, str] = {}
        self._suite = SuiteElement({}, self._root, "")
        self._suites: list[SuiteElement] = []
        self._suite_count = 0
        self._has_cases = False
        self._foreign = ""  # an element that may be a test of another tool's format
        self._case: dict[str, str] | None = None
        self._parts: Sequence[Part] = NO_PARTS
        self._part: tuple[str, dict[str, str]] | None = None
        self._properties: dict[str, str] = {}  # those of the open case that are measurements
        self._clip: Clip | None = None
        self._done: list[CaseOrRun] = []
        self._choose = choose
        self._make = choose(self._suite)
        self._templates: dict[str, Case] = {}  # of runs, made by `_make`
        self._passed_over = (0, 0)  # a line, and the number of its columns that expat did not see
        self._in_cdata = False
        self._parser = xml_parser(self._start, self._end, self._doctype)
        self._parser.StartCdataSectionHandler = partial(self._cdata, True)
        self._parser.EndCdataSectionHandler = partial(self._cdata, False)

    @property
    def unfinished(self) -> int:
        """Return the number of bytes of the unfinished token."""
        return self._fed - self._parser.CurrentByteIndex if self._fed and not self._after else 0

    def feed(self, chunk: bytes) -> list[CaseOrRun]:
        """Parse a chunk, and return the cases that ended in it."""
        if not self._fed and chunk.lstrip()[:1] in (b"{", b"["):
            raise NotXml(texts.XML_IS_JSON)
        parser = self._parser
        self._done.clear()
        if MARK.encode() in chunk:
            self._read_with_runs(chunk.decode())
        else:
            self._give(chunk)
        if self.unfinished > MAX_TOKEN_BYTES:
            self._too_much(texts.XML_LONG_MARKUP, MAX_TOKEN_BYTES)
        # pyexpat keeps every name that it meets in `intern` for as long as the parser lives.
        if len(parser.intern) > MAX_XML_NAMES:
            self._too_much(texts.XML_NAMES, MAX_XML_NAMES)
        return self._done

    def close(self) -> None:
        """Make sure that the document is complete."""
        if not self._fed:
            raise NotXml(texts.XML_EMPTY)
        self._parse(b"", final=True)
        if self._foreign and not self._has_cases:
            raise Refused(texts.XML_NO_CASES.format(tag=self._foreign[:MAX_TAG_SHOWN]))

    def _read_with_runs(self, text: str) -> None:
        """Give expat the parts of a chunk that are not runs of plain cases.

        If runs are rare, fewer and fewer places are tried, so the time stays linear in the text.
        """
        position = step = 0
        while (next_case := text.find(MARK, position + step)) >= 0:
            self._give(text[position:next_case].encode())
            position = next_case
            if not self._is_between_cases():
                break
            rows, end = rows_at(text, position)
            if rows:
                self._take(rows, text, position, end)
            position = end
            # No plain case follows, whether or not white space comes first.
            step = len(MARK) if rows else 2 * step + len(MARK)
        self._give(text[position:].encode())

    def _is_between_cases(self) -> bool:
        """Return whether a case may begin here: between elements, and not too deep for a case and its skip."""
        is_outside = self._case is None and not self._in_cdata and 0 < self._depth <= MAX_DEPTH - 2
        return is_outside and not self._after and self._parser.CurrentByteIndex == self._fed

    def _take(self, rows: Rows, text: str, begin: int, end: int) -> None:
        """Add a run of cases; expat reads those whose values are not plain."""
        if rows.are_plain:
            self._add_run(rows, text[begin:end])
            return
        done = 0
        for number, (start, stop) in enumerate(spans(text, begin, end)):
            if not rows.part(number, number + 1).are_plain:
                self._add_run(rows.part(done, number), text[begin:start])
                self._give(text[start:stop].encode())
                done, begin = number + 1, stop
        self._add_run(rows.part(done), text[begin:end])

    def _add_run(self, rows: Rows, text: str) -> None:
        """Add a run of plain cases, if there are any; leave the run to expat if one of them is not a test."""
        if not text:
            return
        classnames, names, times, kinds = rows
        self._has_cases = True
        if not PLACEHOLDERS.isdisjoint(classnames):
            self._give(text.encode())
            return
        for kind in dict.fromkeys(kinds):
            if kind not in self._templates:
                attributes = {"classname": classnames[0], "name": names[0]}
                parts = [Part("skipped", skip_of(kind), "")] if kind else NO_PARTS
                if (made := self._make(attributes, parts, self._suite)) is None:
                    self._give(text.encode())
                    return
                self._templates[kind] = made
        self._elements += len(kinds) - kinds.count("")
        if self._elements > MAX_ELEMENTS:
            self._too_much(texts.XML_ELEMENTS, MAX_ELEMENTS)
        self._pass_over(text)
        self._done.append(CaseRun(classnames, names, times, kinds, {kind: self._templates[kind] for kind in {*kinds}}))

    def _pass_over(self, text: str) -> None:
        """Let expat count the lines of a text that it does not read, and remember the columns."""
        lines, columns = text.count("\n"), len(text)
        if lines:
            self._give(b"\n" * lines)
            columns -= text.rfind("\n") + 1
        line, columns_before = self._parser.CurrentLineNumber, 0
        if not lines and line == self._passed_over[0]:
            columns_before = self._passed_over[1]
        self._passed_over = line, columns_before + columns

    def _give(self, piece: bytes) -> None:
        if self._after:
            self._ignore(self._end_of_chunk + piece, len(self._end_of_chunk))
        else:
            self._parse(piece)
        self._fed += len(piece)
        self._end_of_chunk = (self._end_of_chunk + piece[-LONGEST_TAG:])[-LONGEST_TAG:]

    def _parse(self, chunk: bytes, *, final: bool = False) -> None:
        try:
            self._parser.Parse(chunk, final)
        except expat.ExpatError as error:
            offset = self._parser.ErrorByteIndex - self._fed
            if self._elements and not self._depth:
                self._after = error.lineno
                self._repairs.add(Repair.TEXT_AFTER, error.lineno)
                self._ignore(chunk[offset:] if offset >= 0 else self._end_of_chunk[offset:] + chunk)
                return
            reason = expat.ErrorString(error.code) or "not well-formed"
            begins = chunk[max(0, offset - len(b"<!doctype")) :][:DOCTYPE_SHOWN].lower()
            if not final and b"<!doctype" in begins:
                self._refuse(texts.XML_HTML if b"html" in begins else texts.XML_DOCTYPE)
            text = texts.XML_CUT_OFF if final else texts.XML_BROKEN
            column = error.offset + 1 + (self._passed_over[1] if error.lineno == self._passed_over[0] else 0)
            raise NotXml(text.format(line=error.lineno, column=column, reason=reason)) from None

    def _ignore(self, raw: bytes, counted_bytes: int = 0) -> None:
        """Ignore text after the document, unless another document begins there.

        The line ends in the first `counted_bytes` bytes are counted already.
        """
        if match := SECOND_DOCUMENT.search(raw):
            raise NotXml(texts.XML_SECOND.format(line=self._after + raw.count(b"\n", counted_bytes, match.start())))
        self._after += raw.count(b"\n", counted_bytes)

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        self._depth = depth = self._depth + 1
        if depth > MAX_DEPTH:
            self._too_much(texts.XML_DEEP, MAX_DEPTH)
        if len(attributes) > MAX_ATTRIBUTES:
            self._too_much(texts.XML_WIDE, MAX_ATTRIBUTES)
        if tag == "testcase":
            if self._case is not None or depth == 1:
                self._refuse(texts.XML_NESTED)
            self._has_cases = True
            self._case = attributes
            self._case_depth = depth
        elif self._case is None:
            self._outside(tag, attributes)
        else:
            self._inside(tag, attributes)

    def _end(self, tag: str) -> None:
        self._depth = depth = self._depth - 1
        case = self._case
        if case is not None:
            if tag == "testcase":
                self._case = None
                parts, self._parts = self._parts, NO_PARTS
                try:
                    made = self._make(case, parts, self._suite)
                    if self._properties:
                        measurements = of_properties(case.get("name", ""), self._properties.items())
                        self._properties = {}
                        made = made._replace(measurements=measurements) if made is not None else None
                except Refused as refused:
                    raise type(refused)(f"line {self._parser.CurrentLineNumber}: {refused}") from None
                if made is not None:
                    self._done.append(made)
                    # By identity: a test may really be called "(unnamed)".
                    if made[0] is UNNAMED:
                        self._repairs.add(Repair.NAMELESS, self._parser.CurrentLineNumber)
            elif depth == self._case_depth and self._part is not None:
                self._end_part()
        elif tag == "testsuite":
            self._enter(self._suites.pop())

    def _enter(self, suite: SuiteElement) -> None:
        make = self._choose(suite)
        # Without a group of attempts, the template of a plain case depends on its suite by the suite's file alone. A
        # report may have a suite for each dozen cases, and making templates anew takes an eighth of its time.
        is_same = make is self._make and suite.file == self._suite.file
        if not is_same or any(template.attempt for template in self._templates.values()):
            self._templates = {}
        self._suite, self._make = suite, make

    def _cdata(self, begins: bool) -> None:
        self._in_cdata = begins

    def _outside(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element outside cases: the root, a suite, or an element that is ignored."""
        self._count()
        if self._depth == 1:
            if reason := foreign_refusal(tag, attributes):
                raise Refused(reason)
            if tag not in SUITES:
                if tag.lower() == "html":
                    self._refuse(texts.XML_HTML)
                raise Refused(texts.XML_ROOT.format(tag=tag[:MAX_TAG_SHOWN]))
            self._root = attributes
            self._enter(SuiteElement({}, attributes, ""))
        if not self._has_cases and not self._foreign and is_like_test(tag):
            self._foreign = tag
        if tag == "testsuite":
            outer = self._suite
            path = suite_path(outer.path, attributes)
            if len(path) > MAX_RAW_NAME:
                self._too_much(texts.XML_LONG_SUITES, MAX_RAW_NAME)
            self._suites.append(outer)
            self._suite_count += 1
            file = attributes.get("file") or outer.file
            self._enter(SuiteElement(attributes, self._root, path, self._suite_count, file))

    def _inside(self, tag: str, attributes: dict[str, str]) -> None:
        """Handle the start of an element inside a case; collect its text if it says how the case ended."""
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            self._too_much(texts.XML_ELEMENTS, MAX_ELEMENTS)
        if self._depth > self._case_depth + 1:
            if tag in LOGS:
                self._parser.CharacterDataHandler = None
            elif tag == "property" and attributes.get("name", "").startswith(PROPERTY):
                if len(self._properties) > MAX_MEASUREMENTS:
                    self._too_much(texts.XML_MEASUREMENTS, MAX_MEASUREMENTS)
                self._properties[attributes["name"]] = attributes.get("value", "")
        elif len(self._parts) < MAX_PARTS and (tag in OUTCOMES or (tag in LOGS and self._parts)):
            self._part = tag, attributes
            if tag != "skipped" or "message" not in attributes or attributes["message"] in SAYS_NOTHING:
                self._clip = clip = Clip()
                self._parser.CharacterDataHandler = clip.add

    def _end_part(self) -> None:
        """Add the part that ends here to the open case."""
        text = ""
        if self._clip is not None:
            self._parser.CharacterDataHandler = None
            text = self._clip.text()
        if self._part is not None:
            self._parts = [*self._parts, _new(Part, (*self._part, text))]
        self._part = self._clip = None

    def _count(self) -> None:
        self._elements += 1
        if self._elements > MAX_ELEMENTS:
            self._too_much(texts.XML_ELEMENTS, MAX_ELEMENTS)

    def _doctype(self, name: str, *_declared: object) -> None:
        if reason := foreign_refusal(name, {}):
            raise Refused(reason)
        self._refuse(texts.XML_HTML if name.lower() == "html" else texts.XML_DOCTYPE)

    def _refuse(self, text: str) -> NoReturn:
        raise Refused(text.format(line=self._parser.CurrentLineNumber))

    def _too_much(self, text: str, limit: int) -> NoReturn:
        raise TooMuch(text.format(line=self._parser.CurrentLineNumber, limit=limit))
