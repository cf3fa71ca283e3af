"""Read the lines of a plain text report, of any length, as a tool wrote them: without what a log writes before them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from nightjar_formats.patterns import Pattern

MAX_LINE_BYTES = 1 << 16
"""The most bytes of a line that are read; the rest of a longer line is ignored."""
TAB = 8
"""Columns between tab stops."""

CONSOLE = r"(?:<\d{1,3}>)?\[ *\+?\d{1,9}\.\d{1,9}(?: <[ +.\d]{1,20}>)?\](?: ?\[ *(?:[TC]|CPU)\d{1,9}\])?"
"""What printk and dmesg write before a line: level, time, the time since the line before, and thread or processor."""
_DAY, _TIME = r"[A-Z][a-z]{2} [ \d]?\d", r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_STAMPS = (
    CONSOLE,
    rf"\[{_TIME}\]",  # prove --timer, terminal programs
    rf"\[?\d{{4}}-\d\d-\d\d[T ]{_TIME}(?:Z|[+-]\d\d:?\d\d)?\]?",  # logs of CI, dmesg --time-format iso
    rf"\[(?:[A-Z][a-z]{{2}} )?{_DAY} {_TIME}(?: \d{{4}})?\]",  # dmesg -T
    r"\[[A-Z][a-z]{2} ?\d{1,2} \d\d:\d\d\]",  # dmesg -e
    rf"{_DAY} {_TIME}(?: \S+ [\w./-]+(?:\[\d{{1,9}}\])?:)?",  # syslog, journalctl, ts
    r"[a-z]{4,8} *:[a-z]{3,7} *:",  # dmesg -x
)
_PREFIX = Pattern(rf"(?:(?:{'|'.join(_STAMPS)}) )*(?:{CONSOLE})?")
_FIRST = frozenset("[<0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZkudaslm")
"""The characters that a prefix begins with; only few lines of a report begin with one of them."""


def text_lines(stream: BinaryIO) -> Iterator[str]:
    """Yield each line without its end and its prefix, cut to MAX_LINE_BYTES; tabs in its indentation become spaces."""
    is_rest = False
    while piece := stream.readline(MAX_LINE_BYTES):
        is_whole = piece.endswith(b"\n")
        if not is_rest:
            yield bare_line(piece.decode("utf-8", "replace"))
        is_rest = not is_whole


def bare_line(line: str) -> str:
    r"""Return a line without its end and the prefix of a console or a log, with spaces in place of leading tabs.

    >>> bare_line("[    0.060000] \tok 1 - copies")
    '        ok 1 - copies'
    """
    # A serial console also ends lines with LF CR, and files that were joined have byte order marks inside.
    line = line.strip("\r\n").removeprefix("\ufeff")
    if line[:1] in _FIRST:
        line = line[prefix_length(line) :]
    return with_spaces(line) if line[:1] in ("\t", " ") else line


def prefix_length(line: str) -> int:
    """Return the length of the prefix that a console or a log wrote before a line."""
    match = _PREFIX.match(line)
    return 0 if match is None else match.end()


def with_spaces(line: str) -> str:
    """Return a line with the tabs of its indentation as spaces."""
    body = line.lstrip(" \t")
    return line[: len(line) - len(body)].expandtabs(TAB) + body
