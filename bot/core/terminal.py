"""Text for a terminal: aligned, and without control sequences."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence

from nightjar_formats.terminal import escape_controls

GAP = "  "
SHORTEST_CUT = 30
"""The fewest columns of a truncated cell, even if the line becomes too long."""


def table(headers: Sequence[str], rows: Sequence[Sequence[str]], *, width: int | None = None) -> str:
    """Return rows under their headers, in columns as wide as their widest cell; the last column is left ragged.

    With `width`, the last column is cut to fit lines of so many columns.
    """
    cells = [[escape_controls(cell) for cell in row] for row in (headers, *rows)]
    widths = [max(_width(row[column]) for row in cells) for column in range(len(headers))]
    if width is not None:
        room = max(SHORTEST_CUT, width - sum(widths[:-1]) - len(GAP) * (len(widths) - 1))
        cells = [[*row[:-1], _cut(row[-1], room)] for row in cells]
        widths[-1] = min(widths[-1], room)
    lines = []
    for row in cells:
        padded = [cell + " " * (width - _width(cell)) for cell, width in zip(row, widths, strict=True)]
        lines.append(GAP.join(padded).rstrip())
    return "\n".join(lines)


def _cut(text: str, room: int) -> str:
    if _width(text) <= room:
        return text
    while _width(text) > room - 1:
        text = text[:-1]
    return f"{text}…"


def _width(text: str) -> int:
    """Return how many columns a text takes: wide East Asian characters take two, combining ones none."""
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)
