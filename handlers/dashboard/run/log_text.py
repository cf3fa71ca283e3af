"""Read a log: one page of its lines, and the lines that name a failing test. Runs in a process for untrusted input.

Time and memory are linear in the log, whatever it contains and however many tests fail: one pattern finds the lines
that have a word of a test's name, and the names are compared with these lines only.
"""

from __future__ import annotations

import os
import re  # noqa: TID251  # one class of characters, which cannot backtrack
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import BinaryIO, NamedTuple

from nightjar_formats.patterns import Pattern
from nightjar_formats.readers.decoding.inflate import inflated
from nightjar_formats.readers.decoding.utf_8 import repaired
from nightjar_formats.readers.decoding.wide_text import as_utf_8
from nightjar_formats.readers.repairs import Repairs
from nightjar_formats.refused import Refused, TooMuch

from handlers.dashboard.shared.texts import LOG_TOO_LONG

PAGE_LINES = 1000
"""Lines that a page shows at once."""
MOST_BYTES = 64 << 20
"""The most bytes of a log that are read, after inflating."""
READ_BYTES = 1 << 16
LONGEST_LINE = 2000
"""The most characters of a line that are shown and searched; the rest is left out."""
MOST_TESTS = 500
"""The most failing tests that are searched for."""
MOST_MENTIONS, MOST_OF_TEST = 2000, 20
"""The most lines that are marked, of all tests and of one."""
MOST_STEPS = 2_000_000
"""The most comparisons of a test's name with a line."""
LEAST_NAME = 3
"""Characters of a name from which it is searched for; shorter ones are in many lines by chance."""
SEARCHED = 64
"""The most characters of a word that find the lines in which it may be."""

_WORD = re.compile(r"[A-Za-z0-9_]+")  # noqa: TID251
_INSIDE_NAME = ("[", "/")
"""Characters after a name that make it the beginning of another one: `test_add[llvm]`, `Suite.Test/0`."""


class Mention(NamedTuple):
    """A line that names a failing test; lines count from 1."""

    line: int
    test: str


class LogPage(NamedTuple):
    """One page of a log: `lines` begin with line `first_line` of `total_lines`.

    `mentions` are those of the whole log, in order. `stop_reason` says why the log was not read to its end; it is empty
    if it was.
    """

    lines: list[str]
    first_line: int
    total_lines: int
    mentions: list[Mention]
    stop_reason: str


def read_log(files: Sequence[BinaryIO], name: str, tests: Sequence[str], line: int, test: str) -> LogPage:
    """Return the page of a log with the first line that names a test, or else with a line, or else the first page.

    `tests` are the failing ones. Control characters, such as colors, are left out.
    """
    (file,) = files
    finder, total_lines, stop_reason = _Finder(tests), 0, ""
    try:
        for block in _blocks(file, name):
            finder.add(total_lines + 1, block)
            total_lines += block.count("\n")
    except Refused as refused:
        # What comes before a fault, or a limit, is shown.
        stop_reason = str(refused)
    requested_line = next((mention.line for mention in finder.mentions if mention.test == test), line)
    first_line = (requested_line - 1) // PAGE_LINES * PAGE_LINES + 1 if 1 <= requested_line <= total_lines else 1
    file.seek(0)
    lines = _lines(file, name, first_line, min(first_line - 1 + PAGE_LINES, total_lines))
    return LogPage(lines, first_line, total_lines, finder.mentions, stop_reason)


def _blocks(file: BinaryIO, name: str) -> Iterator[str]:
    """Yield a log in blocks of whole lines, of which only the first `LONGEST_LINE` characters are certain.

    Each line ends with a line feed. Raises Refused where the log ends too early or is too long.
    """
    if not file.seek(0, os.SEEK_END):
        return
    file.seek(0)
    repairs = Repairs()
    stream = repaired(as_utf_8(inflated(file, name), repairs), repairs)
    count, begun_line = 0, b""
    # One read of the stream below, because a read of several would lose what came before a fault.
    while piece := stream.read1(READ_BYTES):
        count += len(piece)
        if count > MOST_BYTES:
            break
        whole_lines, line_feed, rest = piece.rpartition(b"\n")
        if line_feed:
            yield f"{(begun_line + whole_lines).decode(errors='replace')}\n"
            begun_line = b""
        # A character has four bytes at most.
        begun_line = (begun_line + rest)[: 4 * LONGEST_LINE]
    if begun_line:
        yield f"{begun_line.decode(errors='replace')}\n"
    if count > MOST_BYTES:
        raise TooMuch(LOG_TOO_LONG.format(name=name, most=MOST_BYTES >> 20))


def _lines(file: BinaryIO, name: str, first: int, last: int) -> list[str]:
    """Return some lines of a log, which counts its lines from 1."""
    lines, number = list[str](), 1
    blocks = _blocks(file, name)
    # What comes after the last line is not read, because it may be a fault.
    while number <= last and (block := next(blocks, "")):
        following = number + block.count("\n")
        if following > first:
            lines += map(_shown, block[:-1].split("\n")[max(0, first - number) : last + 1 - number])
        number = following
    return lines[: last + 1 - first]


def _shown(line: str) -> str:
    line = line.rstrip("\r")
    return line if len(line) <= LONGEST_LINE else f"{line[:LONGEST_LINE]}…"


class _Finder:
    """Finds the lines that name one of the tests."""

    def __init__(self, tests: Sequence[str]) -> None:
        self.mentions: list[Mention] = []
        self._steps = 0
        self._lines_of: Counter[str] = Counter()
        self._names: dict[str, list[tuple[str, str]]] = {}
        """By a word of their names: the names of tests in logs, and the tests."""
        names = [(test.rpartition("::")[2], test) for test in tests[:MOST_TESTS]]
        words_of = {name: _WORD.findall(name) for name, _ in names if len(name) >= LEAST_NAME}
        counts = Counter(word for words in words_of.values() for word in set(words))
        for name, test in names:
            # The word that fewest names have: `1x64` of test_add[1x64], because all parameters share `test_add`.
            if words := words_of.get(name):
                rarest = min(words, key=lambda word: (counts[word], -len(word)))
                self._names.setdefault(rarest, []).append((name, test))
        beginnings = sorted({word[:SEARCHED] + r"\b" * (len(word) <= SEARCHED) for word in self._names})
        self._pattern = Pattern(rf"\b(?:{'|'.join(beginnings)})")

    def add(self, first_line: int, block: str) -> None:
        """Search the next lines, each of which ends with a line feed."""
        line, begin, end = first_line, 0, 0
        for match in self._pattern.finditer(block) if self._names else ():
            if match.start() >= end:
                next_begin = block.rfind("\n", 0, match.start()) + 1
                line += block.count("\n", begin, next_begin)
                begin, end = next_begin, block.find("\n", match.start())
                self._add_line(line, _shown(block[begin:end]))

    def _add_line(self, line: int, text: str) -> None:
        matches: list[tuple[str, str]] = []
        for word in self._names.keys() & set(_WORD.findall(text)):
            names = self._names[word]
            self._steps += len(names)
            if self._steps > MOST_STEPS or len(self.mentions) >= MOST_MENTIONS:
                self._names = {}
                return
            matches += [(name, test) for name, test in names if _is_named(text, name)]
        # Tests of several files may have this name; perhaps the line says which file.
        matches_of_file = [(name, test) for name, test in matches if "::" in test and test.partition("::")[0] in text]
        for _, test in sorted(matches_of_file or matches):
            if self._lines_of[test] < MOST_OF_TEST:
                self._lines_of[test] += 1
                self.mentions.append(Mention(line, test))


def _is_named(text: str, name: str) -> bool:
    """Return whether a text has a name that is not a part of another name."""
    start = text.find(name)
    while start >= 0:
        end = start + len(name)
        previous_character, next_character = text[start - 1 : start], text[end : end + 1]
        is_whole = not _WORD.fullmatch(previous_character) and not _WORD.fullmatch(next_character)
        if is_whole and next_character not in _INSIDE_NAME:
            return True
        start = text.find(name, end)
    return False
