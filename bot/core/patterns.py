r"""Match patterns against text from outside, in time linear in the text.

Python's `re` backtracks: one line that somebody chose can keep it busy for hours, with the interpreter's lock held.
RE2 does not (https://github.com/google/re2/wiki/WhyRE2), so it has no look-around and no back-references; code that
needs either checks the neighbours of a match itself. The linter refuses `re` elsewhere.

Differences from `re` that matter here (https://github.com/google/re2/wiki/Syntax): `\s`, `\w`, `\d` and `\b` know
ASCII only, so SPACE and LETTER_OR_DIGIT stand here; `$` is the end of the text, not the place before a last line end.

One search is linear. Many in a row (`finditer`, `sub`, `split`) are if no search has to read far behind its match to
know where that ends: what may follow an unbounded repetition must not be what the next match begins with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Literal
from unicodedata import normalize  # noqa: TID251  # for `normalized`, which guards it

# google-re2 has no type information.
import re2  # type: ignore[import-untyped]

SPACE = r"\t-\r\x1c-\x20\x85\p{Z}"
"""What `str.isspace` calls space, to be written inside brackets: `[{SPACE}]`."""
LETTER_OR_DIGIT = r"\p{L}\p{N}"
"""What `str.isalnum` takes, to be written inside brackets."""

MAX_MEMORY = 1 << 20
"""Bytes that one pattern may use for what it remembers of a text; beyond that RE2 forgets, or goes slower."""

_HALF_PAIRS = dict.fromkeys(range(0xD800, 0xE000), "\N{REPLACEMENT CHARACTER}")
_UNANCHORED, _AT_START, _WHOLE = re2._Anchor.UNANCHORED, re2._Anchor.ANCHOR_START, re2._Anchor.ANCHOR_BOTH

_Span = tuple[int, int]


class PatternMatch:
    """One match; positions count the text's characters. A group that took no part is None, and spans (-1, -1)."""

    __slots__ = ("_index", "_spans", "_text")

    def __init__(self, text: str, spans: list[_Span], index: Mapping[str, int]) -> None:
        self._text, self._spans, self._index = text, spans, index

    def __getitem__(self, group: int | str) -> str | Any:
        start, end = self._spans[group if isinstance(group, int) else self._index[group]]
        return None if start < 0 else self._text[start:end]

    def groups(self) -> tuple[str | Any, ...]:
        """Return what each group matched, without the whole."""
        return tuple(self[group] for group in range(1, len(self._spans)))

    def start(self) -> int:
        """Return where the match begins."""
        return self._spans[0][0]

    def end(self) -> int:
        """Return where the match ends."""
        return self._spans[0][1]


class Pattern:
    """A pattern in RE2's syntax. Raises ValueError for text that is none.

    Half a surrogate pair, which JSON can hold and UTF-8 cannot, is matched as if it were U+FFFD. No method takes a
    position to begin at: a loop that called it would encode the text anew each time. Use `finditer`.
    """

    __slots__ = ("_index", "_matched", "source")

    def __init__(
        self, source: str, *, ignore_case: bool = False, dot_is_any: bool = False, by_line: bool = False
    ) -> None:
        options = re2.Options()
        # Else RE2 writes what is wrong with somebody's pattern to standard error; it is raised below.
        options.log_errors = False
        options.max_mem = MAX_MEMORY
        options.case_sensitive = not ignore_case
        options.dot_nl = dot_is_any
        self.source = source
        try:
            compiled = re2.compile(f"(?m){source}" if by_line else source, options)
        except re2.error as error:
            raise ValueError(f"{source!r} is no pattern of RE2: {error}") from None
        self._index: Mapping[str, int] = compiled.groupindex
        # The module's own methods take five times as long for each match, and raise for half a surrogate pair.
        self._matched = compiled._regexp.Match

    def match(self, text: str) -> PatternMatch | None:
        """Match at the beginning of the text."""
        return next(self._matches(_AT_START, text), None)

    def fullmatch(self, text: str) -> PatternMatch | None:
        """Match the whole text."""
        return next(self._matches(_WHOLE, text), None)

    def search(self, text: str) -> PatternMatch | None:
        """Find the first match in the text."""
        return next(self._matches(_UNANCHORED, text), None)

    def finditer(self, text: str) -> Iterator[PatternMatch]:
        """Find all matches, none of which overlap."""
        return self._matches(_UNANCHORED, text)

    def findall(self, text: str) -> list[str]:
        """Return all matches, whole, whatever groups the pattern has."""
        return [found[0] for found in self.finditer(text)]

    def sub(self, replacement: str | Callable[[PatternMatch], str], text: str) -> str:
        """Replace every match; a replacement that is text is put there as it is."""
        pieces, position = [], 0
        for found in self.finditer(text):
            pieces.append(text[position : found.start()])
            pieces.append(replacement if isinstance(replacement, str) else replacement(found))
            position = found.end()
        return "".join((*pieces, text[position:])) if pieces else text

    def split(self, text: str) -> list[str]:
        """Return what stands between the matches."""
        pieces, position = [], 0
        for found in self.finditer(text):
            pieces.append(text[position : found.start()])
            position = found.end()
        return [*pieces, text[position:]]

    def _matches(self, anchor: object, text: str) -> Iterator[PatternMatch]:
        encoded = without_half_pairs(text).encode()
        characters = _Characters(encoded)
        start, end = 0, len(encoded)
        while True:
            spans: list[_Span] = self._matched(anchor, encoded, start, end)
            begins, ends = spans[0]
            if begins < 0:
                return
            yield PatternMatch(text, spans if len(text) == end else characters.spans(spans), self._index)
            if ends == end:
                return
            # Behind an empty match it goes on one character further, or it would find that again for ever.
            start = ends if ends > begins else characters.after(ends)


class _Characters:
    """Counts characters of UTF-8 for spans of bytes that come in order, so that no byte is counted twice."""

    def __init__(self, encoded: bytes) -> None:
        self._encoded = encoded
        self._bytes = self._count = 0

    def spans(self, spans: list[_Span]) -> list[_Span]:
        # The next match begins behind this one, whose groups all lie within it.
        (begins, ends), *groups = spans
        start, inside = self._at(begins), self._encoded[begins:ends]
        found = [(start, self._at(ends))]
        for begin, end in groups:
            if begin < 0:
                found.append((-1, -1))
            else:
                before = start + len(inside[: begin - begins].decode())
                found.append((before, before + len(inside[begin - begins : end - begins].decode())))
        return found

    def _at(self, place: int) -> int:
        self._count += len(self._encoded[self._bytes : place].decode())
        self._bytes = place
        return self._count

    def after(self, place: int) -> int:
        """Return where the character that begins at a place ends."""
        place += 1
        while place < len(self._encoded) and self._encoded[place] & 0xC0 == 0x80:
            place += 1
        return place


_MARKS = Pattern(r"\p{M}{31}")


@lru_cache(maxsize=128)
def glob(pattern: str) -> Pattern:
    """Return a shell pattern as `fnmatch.fnmatchcase` reads it: `*` (which also matches `/`), `?`, `[abc]`, `[!a-c]`.

    The standard library's own takes time that grows with the product of both lengths.
    """
    parts, position = [], 0
    while position < len(pattern):
        character = pattern[position]
        closing = pattern.find("]", position + (3 if pattern[position + 1 : position + 2] == "!" else 2))
        position += 1
        if character == "[" and closing > 0:
            parts.append(_one_of(pattern[position:closing]))
            position = closing + 1
        else:
            parts.append({"*": ".*", "?": "."}.get(character) or escape_pattern(character))
    return Pattern("".join(parts), dot_is_any=True)


def _one_of(inside: str) -> str:
    negated, inside = inside.startswith("!"), inside.removeprefix("!")
    ranges, position = [], 0
    while position < len(inside):
        is_range = inside[position + 1 : position + 2] == "-" and position + 2 < len(inside)
        first, last = inside[position], inside[position + 2] if is_range else inside[position]
        if first <= last:
            ranges.append(f"\\x{{{ord(first):x}}}-\\x{{{ord(last):x}}}")
        position += 3 if is_range else 1
    if ranges:
        return f"[{'^' if negated else ''}{''.join(ranges)}]"
    return "." if negated else r"[^\x00-\x{10ffff}]"


def escape_pattern(text: str) -> str:
    """Return a pattern that matches this text and nothing else."""
    escaped: str = re2.escape(without_half_pairs(text))
    return escaped


def normalized(form: Literal["NFC", "NFKC"], text: str) -> str:
    """Return a text in one of Unicode's normal forms.

    One with more than 30 marks on one letter, which no language has, stays as it is: Python sorts the marks in
    quadratic time (https://www.unicode.org/reports/tr15/#Stream_Safe_Text_Format).
    """
    return text if text.isascii() or _MARKS.search(text) else normalize(form, text)


def without_half_pairs(text: str) -> str:
    """Return a text with U+FFFD for each half of a surrogate pair, which UTF-8 cannot hold."""
    if not text.isascii():
        try:
            text.encode()
        except UnicodeEncodeError:
            return text.translate(_HALF_PAIRS)
    return text
