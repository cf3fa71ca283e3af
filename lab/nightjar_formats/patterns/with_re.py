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
        while (found := pattern.search(plain, start)) is not None:
            yield PatternMatch(text, found.regs, pattern.groupindex)
            begins, ends = found.span()
            if ends == len(plain):
                return
            start = ends if ends > begins else ends + 1

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
    within = False
    for found in _PIECE.finditer(source):
        piece = found[0]
        inside = ""
        if found["category"]:
            inside = _characters_of()[found["category"]]
        elif found["hex"]:
            piece = re.escape(chr(int(found["hex"], 16)))
        elif piece == r"\s":
            inside = _SPACE
        elif piece == r"\S" and not within:
            piece = f"[^{_SPACE}]"
        elif piece == "$" and not (within or by_line):
            piece = r"\Z"
        if inside:
            piece = inside if within else f"[{inside}]"
        elif piece in ("[", "]"):
            within = piece == "["
        parts.append(piece)
    return "".join(parts)


@lru_cache(maxsize=1)
def _characters_of() -> Mapping[str, str]:
    """Return the ranges of characters in each Unicode category, for use inside brackets."""
    ranges: dict[str, list[list[int]]] = defaultdict(list)
    for code in range(0x110000):
        kind = category(chr(code))
        for name in (kind, kind[0]):
            known = ranges[name]
            if known and known[-1][1] == code - 1:
                known[-1][1] = code
            else:
                known.append([code, code])
    return {name: "".join(f"\\U{one:08x}-\\U{last:08x}" for one, last in found) for name, found in ranges.items()}
