"""Record what a reader repaired in a lab's file: one bad byte or one nameless test must not lose a whole run."""

from __future__ import annotations

from collections.abc import Iterator

from nightjar_formats.readers import texts
from nightjar_formats.text_enum import TextEnum

UNNAMED = "(unnamed)"
"""The name of a test whose report has no name for it."""
UNDECLARED = "windows-1252"
"""The encoding of bytes that are not UTF-8 in a report that declares no encoding. It contains Latin-1."""


class Repair(TextEnum):
    """A fault that was repaired, in words for the lab."""

    CONTROL = texts.REPAIRED_CONTROL
    BYTES = texts.REPAIRED_BYTES
    BYTES_OF_XML = texts.REPAIRED_BYTES_OF_XML
    ENCODING = texts.REPAIRED_ENCODING
    WIDE = texts.REPAIRED_WIDE
    SPACE_BEFORE = texts.REPAIRED_SPACE_BEFORE
    TEXT_BEFORE = texts.REPAIRED_TEXT_BEFORE
    TEXT_AFTER = texts.REPAIRED_TEXT_AFTER
    NAMELESS = texts.REPAIRED_NAMELESS
    NAMELESS_ENTRIES = texts.REPAIRED_NAMELESS_ENTRIES
    NOT_JSON = texts.REPAIRED_NOT_JSON


class Repairs:
    """The repairs of one file: for each kind, their number and the line of the first."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[Repair, tuple[int, int]] = {}

    def add(self, repair: Repair, line: int = 0, count: int = 1) -> None:
        """Count a repair in a line. Lines are counted from 1; 0 is for formats without lines."""
        count_before, first_line = self._made.get(repair, (0, line))
        self._made[repair] = count_before + count, first_line

    def sentences(self) -> Iterator[str]:
        """Yield what was repaired, one sentence for each kind."""
        for repair, (count, line) in self._made.items():
            yield repair.format(count=count, line=line, unnamed=UNNAMED, encoding=UNDECLARED)
