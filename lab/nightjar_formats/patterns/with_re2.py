"""Match patterns with RE2, which the server always has: its time is linear in the text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

# google-re2 has no type information.
import re2  # type: ignore[import-untyped]

from nightjar_formats.patterns.match import PatternMatch, Span, TextPattern, without_half_pairs

MAX_MEMORY = 1 << 20
"""The most bytes of a pattern's cache; beyond that, RE2 drops cached states or becomes slower."""

try:
    _UNANCHORED, _AT_START, _WHOLE = re2._Anchor.UNANCHORED, re2._Anchor.ANCHOR_START, re2._Anchor.ANCHOR_BOTH
except AttributeError:
    # Other packages have a module of this name too: pyre2, fb-re2.
    raise ImportError("the module re2 is not that of google-re2", name="re2") from None


class Re2Pattern(TextPattern):
    """A pattern that RE2 matches."""

    __slots__ = ("_index", "_matched")

    def __init__(
        self, source: str, *, ignore_case: bool = False, dot_is_any: bool = False, by_line: bool = False
    ) -> None:
        options = re2.Options()
        # Otherwise RE2 also writes faults of patterns to standard error; this method raises them.
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
        # The methods of `re2` take five times as long for each match, and raise for half of a surrogate pair.
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

    def _matches(self, anchor: object, text: str) -> Iterator[PatternMatch]:
        encoded = without_half_pairs(text).encode()
        characters = _Characters(encoded)
        start, end = 0, len(encoded)
        while True:
            spans: list[Span] = self._matched(anchor, encoded, start, end)
            begins, ends = spans[0]
            if begins < 0:
                return
            yield PatternMatch(text, spans if len(text) == end else characters.spans(spans), self._index)
            if ends == end:
                return
            # After an empty match, continue one character later, or the search would never end.
            start = ends if ends > begins else characters.after(ends)


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
