"""Repair faults in a lab's XML file at which expat would stop although the meaning is clear.

Such faults are a character that XML forbids, a byte that is not in the file's encoding, and white space or a log line
before `<?xml`. They are replaced or removed here, and counted. A file without them passes through unchanged; the check
costs a tenth of what expat costs.
"""

from __future__ import annotations

import codecs
import re  # noqa: TID251  # bytes, and a search in each chunk of a report
from typing import BinaryIO

from nightjar_formats.limits import NotXml
from nightjar_formats.patterns import possessive
from nightjar_formats.readers import texts
from nightjar_formats.readers.decoding.utf_8 import BOM, NONCHARACTERS, Utf8
from nightjar_formats.readers.repairs import Repair, Repairs

HEAD_BYTES = 1 << 16
"""Bytes at the start of a file that are searched for its first tag."""
LONGEST_CUT = 16
"""The most bytes of a character reference or a color, which may be split between two chunks."""

_BLANK = b" \t\r\n"
_WIDE = ("utf-16", "utf16", "utf-32", "utf32", "ucs-2", "ucs-4", "iso-10646", "unicode")
"""Beginnings of encodings that cannot be right if the declaration is readable byte by byte."""
_NARROW = ("utf-8", "utf8", "ascii", "us-ascii")
_ASCII = bytes(range(0x20, 0x7F)).decode()

_ESCAPES = (b"&#27;", b"&#x1b;", b"&#x1B;")
"""References that begin a color."""
_CONTROL_REFERENCE = re.compile(  # noqa: TID251
    rb"&#(?:0{0,6}(?:[0-8]|1[124-9]|2[0-9]|3[01])|x0{0,6}(?:[0-8bcefBCEF]|1[0-9a-fA-F]));"
)
_LONG_REFERENCE = re.compile(rb"&#(?:0{0,6}([1-9][0-9]{4,6})|x0{0,6}([1-9a-fA-F][0-9a-fA-F]{3,5}));")  # noqa: TID251
"""A reference that may be to a character that XML forbids. The number of digits is limited, so each search is short."""
_FIRST_TAG = possessive(rb"^[ \t]*+(?=<(?:\?xml|testsuites?)[\s/>])", re.MULTILINE)
_DECLARED = re.compile(rb"<\?xml\s[^<>]{0,200}?encoding\s{0,9}=\s{0,9}[\"']([A-Za-z0-9._-]{1,40})[\"']")  # noqa: TID251


class XmlText:
    """A stream of an XML file as UTF-8, repaired while it is read."""

    def __init__(self, stream: BinaryIO, repairs: Repairs) -> None:
        self._stream = stream
        self._text = Utf8(repairs)
        self._text.bad_bytes = Repair.BYTES_OF_XML
        self._cut = b""
        self._begun = self._ended = False

    def read(self, size: int) -> bytes:
        """Return about `size` bytes, none only at the end of the file. Raises `NotXml`."""
        while not self._ended:
            size = size if self._begun else max(size, HEAD_BYTES)
            raw = _filled(self._stream, size)
            self._ended = len(raw) < size
            if self._begun:
                text = self._text.decoded(raw, final=self._ended)
            else:
                self._begun = True
                text = self._beginning(self._text.decoded(self._with_encoding(raw), final=self._ended))
            if text := self._text.allowed(self._without_references(text)):
                return text
        return b""

    def _with_encoding(self, head: bytes) -> bytes:
        """Detect the encoding that the declaration names; return the first bytes of the file."""
        declared = _DECLARED.match(head, _begin_of(head))
        if declared is None or head.startswith(BOM):
            return head
        encoding = declared[1].decode().lower()
        if encoding.startswith(_WIDE):
            self._text.repairs.add(Repair.ENCODING)
        elif encoding in _NARROW:
            self._text.bad_bytes = Repair.BYTES
        else:
            table = _table(encoding)
            self._text.decode = lambda raw: codecs.charmap_decode(raw, "replace", table)[0]
        return head

    def _beginning(self, text: bytes) -> bytes:
        """Remove what comes before the report, together with the XML declaration, which is only valid at the start."""
        begin = _begin_of(text)
        prefix, body = text[:begin], text[begin:]
        lines = prefix.count(b"\n")
        if prefix in (b"", BOM):
            return body
        if prefix.strip(_BLANK + BOM):
            self._text.repairs.add(Repair.TEXT_BEFORE, lines + 1)
        elif body.startswith(b"<?xml"):
            self._text.repairs.add(Repair.SPACE_BEFORE)
        if body.startswith(b"<?xml") and (end := body.find(b"?>")) >= 0:
            lines += body.count(b"\n", 0, end)
            body = body[end + 2 :]
        return b"\n" * lines + body

    def _without_references(self, text: bytes) -> bytes:
        """Replace references to forbidden characters; hold back a reference that may continue in the next chunk."""
        text, self._cut = self._cut + text, b""
        if not self._ended and (cut := max(text.rfind(b"&", -LONGEST_CUT), text.rfind(b"\x1b", -LONGEST_CUT))) >= 0:
            text, self._cut = text[:cut], text[cut:]
        if b"&" not in text or b"&#" not in text:
            return text
        for escape in _ESCAPES:
            text = text.replace(escape, b"\x1b")
        return _LONG_REFERENCE.sub(_referred, _CONTROL_REFERENCE.sub(b"\x01", text))


def begins_xml(head: bytes) -> bool:
    """Say whether a report begins within the first bytes of a file, perhaps after a log line."""
    return head[_begin_of(head) :].startswith(b"<")


def _filled(stream: BinaryIO, size: int) -> bytes:
    """Read `size` bytes, even if the stream returns fewer at a time; fewer only at its end."""
    pieces, length = [], 0
    while length < size and (piece := stream.read(size - length)):
        pieces.append(piece)
        length += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _begin_of(head: bytes) -> int:
    """Return where the report begins: after white space and a mark, or at the first line with a known tag."""
    begin = len(head) - len(head.lstrip(_BLANK + BOM))
    if head[begin : begin + 1] == b"<":
        return begin
    first_tag = _FIRST_TAG.search(head)
    return first_tag.end() if first_tag else 0


def _table(encoding: str) -> str:
    """Return the characters of a one-byte encoding that extends ASCII. Raises `NotXml`."""
    try:
        table = bytes(range(0x100)).decode(encoding, "replace")
    except (LookupError, ValueError):
        raise NotXml(texts.XML_ENCODING) from None
    if len(table) != 0x100 or table[0x20:0x7F] != _ASCII:
        raise NotXml(texts.XML_ENCODING)
    return table


def _referred(match: re.Match[bytes]) -> bytes:
    number = int(match[1]) if match[1] else int(match[2], 16)
    allowed = number <= 0x10FFFF and not 0xD800 <= number < 0xE000 and number not in (0xFFFE, 0xFFFF)
    return match[0] if allowed else NONCHARACTERS[0]
