"""Make a lab's file UTF-8 without control characters: one bad byte must not lose a whole run."""

from __future__ import annotations

import codecs
import io
import re  # noqa: TID251  # bytes, and a search in each chunk of a report
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from nightjar_formats.readers.repairs import UNDECLARED, Repair, Repairs
from nightjar_formats.readers.values import COLOR

CHUNK = 1 << 16
BOM, UTF16_BOMS = codecs.BOM_UTF8, (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
CONTROLS = bytes((*range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20)))
NONCHARACTERS = ("\ufffe".encode(), "\uffff".encode())
"""Together with the control characters, all that XML 1.0 forbids and UTF-8 allows (https://www.w3.org/TR/xml/#charsets)."""

_FORBIDDEN = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]|\xef\xbf[\xbe\xbf]")  # noqa: TID251
_ONE_CONTROL = bytes.maketrans(CONTROLS, b"\x01" * len(CONTROLS))
_REPLACEMENT = "\N{REPLACEMENT CHARACTER}".encode()
_WINDOWS_1252 = {0xDC00 + byte: bytes((byte,)).decode(UNDECLARED, "replace") for byte in range(0x80, 0x100)}
"""The character for each surrogate that Python's error handler `surrogateescape` makes from a byte."""
_ESCAPED = (b"\xed\xb2", b"\xed\xb3")
"""The first bytes of these surrogates in UTF-8; nothing else begins with them."""
_HIGH = bytes(range(0x80, 0x100))


class Utf8:
    """Repairs the bytes of one file, chunk by chunk; the next chunk begins in line `line`."""

    def __init__(self, repairs: Repairs) -> None:
        self.repairs = repairs
        self.line = 1
        self.bad_bytes = Repair.BYTES
        self.decode: Callable[[bytes], str] | None = None
        """Decodes bytes that are in another encoding."""
        self._cut = b""

    def decoded(self, raw: bytes, *, final: bool) -> bytes:
        """Return bytes as UTF-8; hold back the beginning of a character that continues in the next chunk."""
        if self.decode is not None:
            return self.decode(raw).encode("utf-8", "replace")
        if raw.isascii() and not self._cut:
            return raw
        raw, self._cut = self._cut + raw, b""
        try:
            _, length = codecs.utf_8_decode(raw, "strict", final)
        except UnicodeDecodeError as error:
            return self._with_other_bytes(raw, error.start, final=final)
        self._cut = raw[length:]
        return raw[:length]

    def _with_other_bytes(self, raw: bytes, first: int, *, final: bool) -> bytes:
        text, length = codecs.utf_8_decode(raw, "surrogateescape", final)
        self._cut = raw[length:]
        line = self.line + raw.count(b"\n", 0, first)
        if len(text) == length:  # each byte is one character, so a faster way gives the same text
            self.repairs.add(self.bad_bytes, line, length - len(raw[:length].translate(None, _HIGH)))
            return raw[:length].decode(UNDECLARED, "replace").encode()
        self.repairs.add(self.bad_bytes, line, sum(map(text.encode("utf-8", "surrogatepass").count, _ESCAPED)))
        return text.translate(_WINDOWS_1252).encode()

    def allowed(self, text: bytes) -> bytes:
        """Replace the characters that no report may contain, and count the lines."""
        if len(text.translate(None, CONTROLS)) < len(text) or (
            not text.isascii() and any(character in text for character in NONCHARACTERS)
        ):
            text = self._replaced(text)
        self.line += text.count(b"\n")
        return text

    def _replaced(self, text: bytes) -> bytes:
        first = _FORBIDDEN.search(text)
        line = self.line + text.count(b"\n", 0, first.start() if first else 0)
        count = len(text) - len(text.translate(None, CONTROLS)) + sum(map(text.count, NONCHARACTERS))
        self.repairs.add(Repair.CONTROL, line, count)
        if b"\x1b" in text:
            text = COLOR.sub("", text.decode()).encode()
        text = text.translate(_ONE_CONTROL)
        for forbidden in (b"\x01", *NONCHARACTERS):
            text = text.replace(forbidden, _REPLACEMENT)
        return text


def repaired(stream: BinaryIO, repairs: Repairs) -> io.BufferedReader:
    """Return a stream of a JSON, CSV or text file that is repaired while it is read."""
    return readable(_pieces(stream, repairs))


def _pieces(stream: BinaryIO, repairs: Repairs) -> Iterator[bytes]:
    text = Utf8(repairs)
    raw = stream.read(CHUNK)
    while raw:
        next_raw = stream.read(CHUNK)
        yield text.allowed(text.decoded(raw, final=not next_raw))
        raw = next_raw


class _Chunks(io.RawIOBase):
    """A stream of the bytes that an iterator yields."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Fill the whole buffer if there are enough bytes, so that a peek sees as many as possible."""
        room, filled = memoryview(buffer).cast("B"), 0
        while filled < len(room):
            if not self._left:
                chunk = next(self._chunks, None)
                if chunk is None:
                    break
                self._left = memoryview(chunk)
            count = min(len(room) - filled, len(self._left))
            room[filled : filled + count] = self._left[:count]
            self._left = self._left[count:]
            filled += count
        return filled


def readable(chunks: Iterator[bytes]) -> io.BufferedReader:
    """Return a buffered stream of the bytes that an iterator yields."""
    return io.BufferedReader(_Chunks(chunks), CHUNK)
