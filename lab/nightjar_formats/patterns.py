r"""Match patterns against text from a report: with RE2 if it is installed, as on every server, else with Python's `re`.

A server reads text from others, so it needs RE2, whose time is linear in the text. A lab reads its own files, so
Python's `re` is good enough. Both use RE2's syntax (https://github.com/google/re2/wiki/Syntax): `\s`, `\w`, `\d` and
`\b` match only ASCII, and `$` is the end of the text, not the place before a last line end.
"""

from __future__ import annotations

import re  # noqa: TID251  # where RE2 is not installed; patterns are ours, texts the lab's own
import sys
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, AnyStr
from unicodedata import category

try:
    # google-re2 has no type information.
    import re2  # type: ignore[import-untyped]

    _UNANCHORED, _AT_START, _WHOLE = re2._Anchor.UNANCHORED, re2._Anchor.ANCHOR_START, re2._Anchor.ANCHOR_BOTH
    HAS_RE2 = True
# Other packages have a module of this name too: pyre2, fb-re2.
except (ImportError, AttributeError):
    HAS_RE2 = False

SPACE = r"\t-\r\x1c-\x20\x85\p{Z}"
"""The characters that `str.isspace` accepts, for use inside brackets: `[{SPACE}]`."""
MAX_MEMORY = 1 << 20
"""The most bytes of a small pattern's cache; beyond that, RE2 drops cached states or becomes slower."""
BYTES_PER_INSTRUCTION = 1 << 10
"""The cache of a large pattern, for each instruction of its program. A cache that does not hold a few states is of no
use: then RE2 matches without one, which takes twenty times as long."""
Span = tuple[int, int]

_HALVES = range(0xD800, 0xE000)
_PIECE = re.compile(r"\\p\{(?P<category>[A-Z][a-z]?)\}|\\x\{(?P<hex>[0-9a-fA-F]+)\}|\\.|.", re.DOTALL)  # noqa: TID251
_SPACE = r"\t\n\f\r "
"""The meaning of `\\s` in RE2; Python adds the vertical tab."""


class PatternMatch:
    """One match. Positions count characters. A group that did not take part is None, with the span (-1, -1)."""

    __slots__ = ("_index", "_spans", "_text")

    def __init__(self, text: str, spans: Sequence[Span], index: Mapping[str, int]) -> None:
        self._text, self._spans, self._index = text, spans, index

    def __getitem__(self, group: int | str) -> str | Any:
        start, end = self._spans[group if isinstance(group, int) else self._index[group]]
        return None if start < 0 else self._text[start:end]

    def groups(self) -> tuple[str | Any, ...]:
        """Return the text of each group, without that of the whole match."""
        return tuple(self[group] for group in range(1, len(self._spans)))

    def start(self) -> int:
        """Return where the match begins."""
        return self._spans[0][0]

    def end(self) -> int:
        """Return where the match ends."""
        return self._spans[0][1]


class TextPattern(ABC):
    """A pattern in RE2's syntax. Its first match raises ValueError for an invalid pattern.

    Half of a surrogate pair, which JSON can contain and UTF-8 cannot, is matched as if it were U+FFFD. No method has a
    start position, because a loop with such calls would encode the text again each time; use `finditer`.
    """

    __slots__ = ("source",)

    @abstractmethod
    def match(self, text: str) -> PatternMatch | None:
        """Match at the beginning of the text."""

    @abstractmethod
    def fullmatch(self, text: str) -> PatternMatch | None:
        """Match the whole text."""

    @abstractmethod
    def search(self, text: str) -> PatternMatch | None:
        """Find the first match in the text."""

    @abstractmethod
    def finditer(self, text: str) -> Iterator[PatternMatch]:
        """Find all matches, none of which overlap."""

    def findall(self, text: str) -> list[str]:
        """Return the whole text of all matches, even if the pattern has groups."""
        return [match[0] for match in self.finditer(text)]

    def sub(self, replacement: str | Callable[[PatternMatch], str], text: str) -> str:
        """Replace every match; a text as the replacement is used literally."""
        pieces, position = [], 0
        for match in self.finditer(text):
            pieces.append(text[position : match.start()])
            pieces.append(replacement if isinstance(replacement, str) else replacement(match))
            position = match.end()
        return "".join((*pieces, text[position:])) if pieces else text

    def split(self, text: str) -> list[str]:
        """Return the texts between the matches."""
        pieces, position = [], 0
        for match in self.finditer(text):
            pieces.append(text[position : match.start()])
            position = match.end()
        return [*pieces, text[position:]]


def without_half_pairs(text: str, instead: str = "\N{REPLACEMENT CHARACTER}") -> str:
    """Replace each half of a surrogate pair, which UTF-8 cannot hold, by another character."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return text.translate(dict.fromkeys(_HALVES, instead))
    return text


class Re2Pattern(TextPattern):
    """A pattern that RE2 matches. It is compiled at its first use: most programs never use most of the patterns."""

    __slots__ = ("_flags", "_index", "_matched")

    def __init__(
        self, source: str, *, ignore_case: bool = False, dot_is_any: bool = False, by_line: bool = False
    ) -> None:
        self.source = source
        self._flags = ignore_case, dot_is_any, by_line
        self._index: Mapping[str, int] = {}
        self._matched: Callable[[object, bytes, int, int], list[Span]] = self._matched_first

    def _matched_first(self, anchor: object, encoded: bytes, start: int, end: int) -> list[Span]:
        """Compile the pattern, and match."""
        # Otherwise RE2 also writes faults of patterns to standard error; this method raises them.
        compiled = self.compiled(log_errors=False)
        self._index = compiled.groupindex
        # The methods of `re2` take five times as long for each match, and raise for half of a surrogate pair.
        self._matched = compiled._regexp.Match
        return self._matched(anchor, encoded, start, end)

    def compiled(self, *, log_errors: bool) -> Any:
        """Return RE2's form of the pattern. Raises ValueError if it is none."""
        ignore_case, dot_is_any, by_line = self._flags
        source = f"(?m){self.source}" if by_line else self.source
        options = re2.Options()
        options.log_errors = log_errors
        options.max_mem = MAX_MEMORY
        options.case_sensitive = not ignore_case
        options.dot_nl = dot_is_any
        try:
            pattern = re2.compile(source, options)
            needed = pattern.programsize * BYTES_PER_INSTRUCTION
            if needed > MAX_MEMORY:
                options.max_mem = needed
                pattern = re2.compile(source, options)
        except re2.error as error:
            raise ValueError(f"{self.source!r} is no pattern of RE2: {error}") from None
        return pattern

    def match(self, text: str) -> PatternMatch | None:
        """Match at the beginning of the text."""
        return self._first(_AT_START, text)

    def fullmatch(self, text: str) -> PatternMatch | None:
        """Match the whole text."""
        return self._first(_WHOLE, text)

    def search(self, text: str) -> PatternMatch | None:
        """Find the first match in the text."""
        return self._first(_UNANCHORED, text)

    def finditer(self, text: str) -> Iterator[PatternMatch]:
        """Find all matches, none of which overlap."""
        encoded = without_half_pairs(text).encode()
        characters = _Characters(encoded)
        start, end = 0, len(encoded)
        while True:
            spans = self._matched(_UNANCHORED, encoded, start, end)
            begins, ends = spans[0]
            if begins < 0:
                return
            yield PatternMatch(text, spans if len(text) == end else characters.spans(spans), self._index)
            if ends == end:
                return
            # After an empty match, continue one character later, or the search would never end.
            start = ends if ends > begins else characters.after(ends)

    def _first(self, anchor: object, text: str) -> PatternMatch | None:
        encoded = without_half_pairs(text).encode()
        spans = self._matched(anchor, encoded, 0, len(encoded))
        if spans[0][0] < 0:
            return None
        return PatternMatch(
            text, spans if len(text) == len(encoded) else _Characters(encoded).spans(spans), self._index
        )


class _Characters:
    """Converts byte positions to character positions, in ascending order, so that each byte is counted once."""

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded
        self._bytes = self._count = 0

    def spans(self, spans: list[Span]) -> list[Span]:
        # The next match begins after this one, and all groups of this one are inside it.
        (begins, ends), *groups = spans
        start, inside = self._at(begins), self._encoded[begins:ends]
        converted = [(start, self._at(ends))]
        for begin, end in groups:
            if begin < 0:
                converted.append((-1, -1))
            else:
                group_start = start + len(inside[: begin - begins].decode())
                converted.append((group_start, group_start + len(inside[begin - begins : end - begins].decode())))
        return converted

    def _at(self, place: int) -> int:
        self._count += len(self._encoded[self._bytes : place].decode())
        self._bytes = place
        return self._count

    def after(self, place: int) -> int:
        """Return the end of the character that begins at a position."""
        place += 1
        while place < len(self._encoded) and self._encoded[place] & 0xC0 == 0x80:
            place += 1
        return place


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


if TYPE_CHECKING or HAS_RE2:  # noqa: SIM108  # a type, which an expression is not
    Pattern = Re2Pattern
else:
    Pattern = RePattern


def possessive(source: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Compile a pattern with possessive quantifiers, which Python has since 3.11.

    Older versions, with which a lab reads its own files, compile it without them, so the pattern must match the same
    text either way.
    """
    return re.compile(source if sys.version_info >= (3, 11) else _without_plus(source), flags)  # noqa: TID251


def _without_plus(source: AnyStr) -> AnyStr:
    if isinstance(source, bytes):
        return re.sub(rb"(?<=[*+}])\+", b"", source)  # noqa: TID251  # of one length
    return re.sub(r"(?<=[*+}])\+", "", source)  # noqa: TID251  # of one length
