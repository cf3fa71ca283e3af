"""Convert reports in UTF-16 and UTF-32 to UTF-8, which all readers expect.

PowerShell 5 writes UTF-16 when output is redirected (`>`), so every text format arrives in it. The byte order mark
shows the encoding; without one, the zero bytes of the ASCII characters do, of which all formats mostly consist.
"""

from __future__ import annotations

import codecs
import io
from collections.abc import Iterator
from itertools import chain
from typing import BinaryIO

from nightjar_formats.readers.decoding.utf_8 import CHUNK, readable
from nightjar_formats.readers.repairs import Repair, Repairs

_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins with the mark of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_ZEROS: dict[tuple[bool, ...], str] = {
    (False, True, True, True): "utf-32-le",
    (True, True, True, False): "utf-32-be",
    (False, True, False, True): "utf-16-le",
    (True, False, True, False): "utf-16-be",
}
"""The encoding of ASCII characters for each pattern of bytes that are zero."""
UNIT = 4
"""Bytes of the longest code unit."""
JUDGED_BYTES = 1024
"""Bytes at the start of a file that show its encoding. A log may begin with a few zero bytes."""


def as_utf_8(opened: io.BufferedReader, repairs: Repairs) -> io.BufferedReader:
    """Return a stream of a report as UTF-8 with a byte order mark if it is UTF-16 or UTF-32, else the same stream."""
    head = opened.peek(JUDGED_BYTES)[:JUDGED_BYTES]
    mark, encoding = encoding_of(head)
    if not encoding:
        return opened
    opened.read(len(mark))
    text = _text(opened, encoding)
    first = next(text, "")
    # XML may be in any encoding that it declares; the other formats are UTF-8.
    if not first.lstrip().startswith("<"):
        repairs.add(Repair.WIDE)
    return readable(chunk.encode() for chunk in chain(("\ufeff", first), text))


def encoding_of(head: bytes) -> tuple[bytes, str]:
    """Return the byte order mark and the encoding of a file that begins with `head`; "" for any but UTF-16 and UTF-32.

    At least half of the units must be ASCII characters, and no unit may be zero but for some at the start.
    """
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return mark, encoding
    units = len(head) // UNIT
    zeros = [head[place : UNIT * units : UNIT].count(0) for place in range(UNIT)]
    return b"", _ZEROS.get(tuple(2 * count > units for count in zeros), "") if units else ""


def _text(stream: BinaryIO, encoding: str) -> Iterator[str]:
    """Yield the text of a stream; what is not in its encoding becomes U+FFFD."""
    decoder = codecs.getincrementaldecoder(encoding)("replace")
    while raw := stream.read(CHUNK):
        yield decoder.decode(raw)
    yield decoder.decode(b"", final=True)
