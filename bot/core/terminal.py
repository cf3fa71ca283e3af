"""Text for a terminal: aligned, and without control sequences."""

from __future__ import annotations

import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

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
    ends = list(accumulate(map(_columns, text)))
    return text if not ends or ends[-1] <= room else f"{text[: bisect_right(ends, room - 1)]}…"


def _width(text: str) -> int:
    return sum(map(_columns, text))


def _columns(character: str) -> int:
    """Return how many columns a character takes: a wide East Asian one takes two, a combining one none."""
    if unicodedata.combining(character):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1
