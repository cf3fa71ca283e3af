"""Read XML of formats other than JUnit: bytes in, and a call of a listener for each element, with limits.

The choice of expat and the limits are those of `nightjar_formats.readers.junit.document`. A listener gets the start and
the end of each element, and the text of those elements that it names. Nothing else of the document is stored. If the
listener refuses an element, the error names the line in which the element begins.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from io import BytesIO
from typing import BinaryIO, NoReturn, Protocol
from xml.parsers import expat

from nightjar_formats.limits import (
    MAX_ATTRIBUTES,
    MAX_ELEMENTS,
    MAX_NESTED,
    MAX_TOKEN_BYTES,
    MAX_XML_NAMES,
    NotXml,
)
from nightjar_formats.model import Case
from nightjar_formats.readers import texts
from nightjar_formats.readers.fields import Clip
from nightjar_formats.readers.repairs import Repair, Repairs
from nightjar_formats.readers.xml.foreign import foreign_refusal
from nightjar_formats.readers.xml.parser import CHUNK_BYTES, xml_parser
from nightjar_formats.readers.xml.text import XmlText
from nightjar_formats.refused import Refused, TooMuch

SHOWN = 40


class XmlListener(Protocol):
    """Reads the elements of one format."""

    def start(self, tag: str, attributes: dict[str, str]) -> None:
        """Note the start of an element. Raises TooMuch, to which the line is added, or Refused."""

    def end(self, tag: str, text: str) -> Iterable[Case]:
        """Return the cases that end with this element. Raises Refused, to which the line is added."""

    def rest(self) -> Iterable[Case]:
        """Return the cases that are left at the end of the document."""


def walk(
    stream: BinaryIO,
    repairs: Repairs,
    format_name: str,
    roots: Mapping[str, str],
    texts: frozenset[str],
    listener: XmlListener,
    *,
    most_elements: int = MAX_ELEMENTS,
) -> Iterator[Case]:
    """Read a document piece by piece, and yield the cases that the listener makes.

    `roots` has the names that the root may have, and for a name that it must not have, the reason. `texts` are the
    elements whose text the listener gets, cut to head and tail; none of them contains another. Raises `NotXml` if it is
    not XML or ends too early; `TooMuch` beyond a limit; `Refused` for another root; and what the listener raises.
    """
    text = XmlText(stream, repairs)
    walker = _Walker(repairs, format_name, roots, texts, listener, most_elements)
    # With each chunk, expat scans the unfinished token again, so chunks are large and grow with the token.
    while chunk := text.read(max(CHUNK_BYTES, walker.unfinished)):
        yield from walker.feed(chunk)
    walker.close()
    yield from listener.rest()


def root_of(head: bytes) -> str:
    """Return the name of the root element of a document that begins with `head`, without its prefix; "" for none."""
    tags: list[str] = []
    parser = expat.ParserCreate("utf-8")

    def start(tag: str, _attributes: dict[str, str]) -> None:
        tags.append(tag)
        parser.StartElementHandler = None

    parser.StartElementHandler = start
    with suppress(expat.ExpatError, NotXml):
        head = XmlText(BytesIO(head), Repairs()).read(len(head))
        parser.Parse(head, False)
        if not tags:  # a tag that continues after the head
            tags += head[parser.CurrentByteIndex :][1:].decode("ascii", "ignore").split(maxsplit=1)[:1]
    return tags[0].rpartition(":")[2] if tags else ""


class _Walker:
    """The callbacks for one document, with the completed cases."""

    __slots__ = (
        "_clip", "_depth", "_done", "_elements", "_fed", "_format_name", "_is_over", "_listener", "_most_elements",
        "_open_lines", "_parser", "_repairs", "_roots", "_texts",
    )  # fmt: skip

    def __init__(
        self,
        repairs: Repairs,
        format_name: str,
        roots: Mapping[str, str],
        texts: frozenset[str],
        listener: XmlListener,
        most_elements: int,
    ) -> None:
        self._most_elements = most_elements
        self._repairs, self._format_name, self._roots, self._texts, self._listener = (
            repairs,
            format_name,
            roots,
            texts,
            listener,
        )
        self._is_over = False
        self._depth = self._elements = self._fed = 0
        self._open_lines: list[int] = []  # for each open element, the line in which it begins
        self._clip: Clip | None = None
        self._done: list[Case] = []
        self._parser = xml_parser(self._start, self._end, self._doctype)

    @property
    def unfinished(self) -> int:
        """Return the number of bytes of the unfinished token."""
        return self._fed - self._parser.CurrentByteIndex if self._fed and not self._is_over else 0

    def feed(self, chunk: bytes) -> list[Case]:
        """Parse a chunk, and return the cases that ended in it."""
        self._done.clear()
        if not self._is_over:
            self._parse(chunk)
        self._fed += len(chunk)
        if self.unfinished > MAX_TOKEN_BYTES:
            self._refuse(texts.WALK_LONG_MARKUP, MAX_TOKEN_BYTES)
        # pyexpat keeps every name that it meets in `intern` for as long as the parser lives.
        if len(self._parser.intern) > MAX_XML_NAMES:
            self._refuse(texts.WALK_NAMES, MAX_XML_NAMES)
        return self._done

    def close(self) -> None:
        """Make sure that the document is complete."""
        if not self._is_over:
            self._parse(b"", final=True)

    def _parse(self, chunk: bytes, *, final: bool = False) -> None:
        try:
            self._parser.Parse(chunk, final)
        except expat.ExpatError as error:
            offset = self._parser.ErrorByteIndex - self._fed
            if self._elements and not self._depth and not final and chunk[offset : offset + 1] != b"<":
                self._is_over = True
                self._repairs.add(Repair.TEXT_AFTER, error.lineno)
                return
            reason = expat.ErrorString(error.code) or "not well-formed"
            text = texts.WALK_CUT_OFF if final else texts.WALK_BROKEN
            line, column = error.lineno, error.offset + 1
            raise NotXml(text.format(what=self._format_name, line=line, column=column, reason=reason)) from None

    def _start(self, tag: str, attributes: dict[str, str]) -> None:
        if ":" in tag:
            tag = tag.rpartition(":")[2]
        self._depth += 1
        self._elements += 1
        if self._depth == 1 and (reason := foreign_refusal(tag, attributes)):
            raise Refused(reason)
        if self._depth == 1 and self._roots.get(tag, texts.WALK_ROOT):
            raise Refused(self._roots.get(tag, texts.WALK_ROOT).format(what=self._format_name, tag=tag[:SHOWN]))
        if self._depth > MAX_NESTED:
            self._refuse(texts.WALK_DEEP, MAX_NESTED)
        if self._elements > self._most_elements:
            self._refuse(texts.WALK_ELEMENTS, self._most_elements)
        if len(attributes) > MAX_ATTRIBUTES:
            self._refuse(texts.WALK_WIDE, MAX_ATTRIBUTES)
        line = self._parser.CurrentLineNumber
        self._open_lines.append(line)
        try:
            self._listener.start(tag, attributes)
        except TooMuch as refused:
            raise self._with_line(refused, line) from None
        if tag in self._texts:
            self._clip = clip = Clip()
            self._parser.CharacterDataHandler = clip.add
        elif self._clip is not None:
            self._parser.CharacterDataHandler = self._clip = None

    def _end(self, tag: str) -> None:
        if ":" in tag:
            tag = tag.rpartition(":")[2]
        self._depth -= 1
        text = ""
        if self._clip is not None:
            text = self._clip.text()
            self._parser.CharacterDataHandler = self._clip = None
        line = self._open_lines.pop()
        try:
            self._done.extend(self._listener.end(tag, text))
        except Refused as refused:
            raise self._with_line(refused, line) from None

    def _doctype(self, name: str, *_declared: object) -> None:
        if reason := foreign_refusal(name, {}):
            raise Refused(reason)
        line = self._parser.CurrentLineNumber
        raise Refused(texts.WALK_DOCTYPE.format(what=self._format_name, line=line))

    def _with_line(self, refused: Refused, line: int) -> Refused:
        """Return a listener's error with the format and the line in front."""
        refusal = str(refused).removeprefix(f"{self._format_name}: ")
        return type(refused)(texts.WALK_REFUSAL.format(what=self._format_name, line=line, refusal=refusal))

    def _refuse(self, text: str, limit: int) -> NoReturn:
        raise TooMuch(text.format(what=self._format_name, line=self._parser.CurrentLineNumber, limit=limit))
