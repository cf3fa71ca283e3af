"""Lines of a report that is text, however long they are."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

MAX_LINE_BYTES = 1 << 16
"""Bytes of a line that are read; the rest of a longer one is passed over."""


def text_lines(stream: BinaryIO) -> Iterator[str]:
    """Yield each line without its end, up to MAX_LINE_BYTES of it; tabs that indent it as eight spaces."""
    is_rest = False
    while piece := stream.readline(MAX_LINE_BYTES):
        is_whole = piece.endswith(b"\n")
        if not is_rest:
            line = piece.decode("utf-8", "replace").rstrip("\r\n")
            yield line.expandtabs(8) if line.startswith("\t") else line
        is_rest = not is_whole
