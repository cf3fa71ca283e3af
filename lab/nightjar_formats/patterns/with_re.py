"""Match patterns with Python's `re`, for a lab without RE2, which reads its own files. The server never does."""

from __future__ import annotations

import re  # noqa: TID251  # where RE2 is not installed; patterns are ours, texts the lab's own
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from unicodedata import category

from nightjar_formats.patterns.match import PatternMatch, TextPattern, without_half_pairs

_PIECE = re.compile(r"\\p\{(?P<category>[A-Z][a-z]?)\}|\\x\{(?P<hex>[0-9a-fA-F]+)\}|\\.|.", re.DOTALL)  # noqa: TID251
_SPACE = r"\t\n\f\r "
"""The meaning of `\\s` in RE2; Python adds the vertical tab."""


class RePattern(TextPattern):
    """A pattern with RE2's meaning that Python matches. It is compiled at its first use."""

    __slots__ = ("_compiled", "_flags")

    def __init__(
        self, source: str, *, ignore_case: bool = False, dot_is_any: bool = False, by_line: bool = False
    ) -> None:
        self.source = source
        chosen = {re.IGNORECASE: ignore_case, re.DOTALL: dot_is_any, re.MULTILINE: by_line}
        self._flags = sum((flag for flag, is_set in chosen.items() if is_set), re.ASCII)
        self._compiled: re.Pattern[str] | None = None

    def match(self, text: str) -> PatternMatch | None:
        """Match at the beginning of the text."""
        return _found(self._pattern().match(without_half_pairs(text)), text)

    def fullmatch(self, text: str) -> PatternMatch | None:
        """Match the whole text."""
        return _found(self._pattern().fullmatch(without_half_pairs(text)), text)

    def search(self, text: str) -> PatternMatch | None:
        """Find the first match in the text."""
        return _found(self._pattern().search(without_half_pairs(text)), text)

    def finditer(self, text: str) -> Iterator[PatternMatch]:
        """Find all matches, none of which overlap."""
        plain, start, pattern = without_half_pairs(text), 0, self._pattern()
        while (match := pattern.search(plain, start)) is not None:
            yield PatternMatch(text, match.regs, pattern.groupindex)
            start_of_match, end_of_match = match.span()
            if end_of_match == len(plain):
                return
            start = end_of_match if end_of_match > start_of_match else end_of_match + 1

    def _pattern(self) -> re.Pattern[str]:
        if self._compiled is None:
            by_line = bool(self._flags & re.MULTILINE)
            self._compiled = re.compile(in_syntax_of_re(self.source, by_line=by_line), self._flags)  # noqa: TID251
        return self._compiled


def _found(match: re.Match[str] | None, text: str) -> PatternMatch | None:
    return None if match is None else PatternMatch(text, match.regs, match.re.groupindex)


def in_syntax_of_re(source: str, *, by_line: bool = False) -> str:
    r"""Translate a pattern from RE2's syntax to Python's, for `re.ASCII`.

    >>> print(in_syntax_of_re(r"[^\s:]+\s$"))
    [^\t\n\f\r :]+[\t\n\f\r ]\Z
    """
    parts: list[str] = []
    is_in_brackets = False
    for match in _PIECE.finditer(source):
        piece = match[0]
        ranges = ""
        if match["category"]:
            ranges = _characters_of()[match["category"]]
        elif match["hex"]:
            piece = re.escape(chr(int(match["hex"], 16)))
        elif piece == r"\s":
            ranges = _SPACE
        elif piece == r"\S" and not is_in_brackets:
            piece = f"[^{_SPACE}]"
        elif piece == "$" and not (is_in_brackets or by_line):
            piece = r"\Z"
        if ranges:
            piece = ranges if is_in_brackets else f"[{ranges}]"
        elif piece in ("[", "]"):
            is_in_brackets = piece == "["
        parts.append(piece)
    return "".join(parts)


@lru_cache(maxsize=1)
def _characters_of() -> Mapping[str, str]:
    """Return the ranges of characters in each Unicode category, for use inside brackets."""
    ranges: dict[str, list[list[int]]] = defaultdict(list)
    for code in range(0x110000):
        kind = category(chr(code))
        for name in (kind, kind[0]):
            ranges_of_name = ranges[name]
            if ranges_of_name and ranges_of_name[-1][1] == code - 1:
                ranges_of_name[-1][1] = code
            else:
                ranges_of_name.append([code, code])
    return {
        name: "".join(f"\\U{first:08x}-\\U{last:08x}" for first, last in name_ranges)
        for name, name_ranges in ranges.items()
    }
