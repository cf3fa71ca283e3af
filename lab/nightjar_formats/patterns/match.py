"""The interface of patterns, which does not depend on the library that finds the matches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

_HALVES = range(0xD800, 0xE000)

Span = tuple[int, int]


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
    """A pattern in RE2's syntax. Raises ValueError for an invalid pattern.

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
