"""Read the lines of a plain text report, of any length."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

MAX_LINE_BYTES = 1 << 16
"""The most bytes of a line that are read; the rest of a longer line is ignored."""


def text_lines(stream: BinaryIO) -> Iterator[str]:
    """Yield each line without its end, cut to MAX_LINE_BYTES, with tabs in its indentation as eight spaces."""
    is_rest = False
    while piece := stream.readline(MAX_LINE_BYTES):
        is_whole = piece.endswith(b"\n")
        if not is_rest:
            line = piece.decode("utf-8", "replace").rstrip("\r\n")
            yield line.expandtabs(8) if line.startswith("\t") else line
        is_rest = not is_whole
