"""What a reader repaired in a file that a lab sent: one bad byte or one nameless test must not lose a whole run."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum

UNNAMED = "(unnamed)"
"""The name of a test that its report gives no name."""
UNDECLARED = "windows-1252"
"""How bytes are read that are not UTF-8: the usual encoding of a report that names none. Latin-1 is a part of it."""


class Repair(StrEnum):
    """A fault that does not keep a file from being read, as the lab reads about it."""

    CONTROL = (
        "characters that a report must not hold, such as control characters, were replaced ({count:,}, the first in "
        "line {line:,})"
    )
    BYTES = f"bytes that are not UTF-8 were read as {UNDECLARED} ({{count:,}}, the first in line {{line:,}}); use UTF-8"
    BYTES_OF_XML = (
        f"bytes that are not UTF-8 were read as {UNDECLARED} ({{count:,}}, the first in line {{line:,}}); use UTF-8, "
        'or name the encoding in the first line, as in <?xml version="1.0" encoding="iso-8859-1"?>'
    )
    ENCODING = "the encoding that the XML declaration names was ignored, because the file is not in it; leave it out"
    SPACE_BEFORE = "white space before <?xml was ignored"
    TEXT_BEFORE = "text before the report was ignored; the report begins in line {line:,}"
    TEXT_AFTER = "text after the end of the report was ignored, from line {line:,} on"
    NAMELESS = f"test cases without a name were named {UNNAMED} ({{count:,}}, the first in line {{line:,}})"
    NAMELESS_ENTRIES = f"test cases without a name were named {UNNAMED} ({{count:,}})"
    NOT_JSON = "lines that are not JSON were ignored ({count:,}, the first of them line {line:,})"


class Repairs:
    """The repairs of one file: how many of each kind, and the line of the first."""

    __slots__ = ("_made",)

    def __init__(self) -> None:
        self._made: dict[Repair, tuple[int, int]] = {}

    def add(self, repair: Repair, line: int = 0, count: int = 1) -> None:
        """Count a repair in a line, counted from 1; 0 where the format has none."""
        before, first = self._made.get(repair, (0, line))
        self._made[repair] = before + count, first

    def sentences(self) -> Iterator[str]:
        """Yield what was repaired, one sentence for each kind."""
        for repair, (count, line) in self._made.items():
            yield repair.format(count=count, line=line)
