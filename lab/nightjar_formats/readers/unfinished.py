"""Hold the output of tests that are running or whose names are unknown, with one limit for the whole file."""

from __future__ import annotations

from nightjar_formats.limits import MAX_UNFINISHED_CHARACTERS
from nightjar_formats.readers import texts
from nightjar_formats.readers.fields import SQUEEZE_AT, Clip
from nightjar_formats.refused import TooMuch

ENTRY = 100
"""Characters that each test costs besides its own, so that a million empty tests exceed the limit too."""


class UnfinishedBudget:
    """Counts the characters that a reader holds; `most` is the limit. `format_name` is for the error text."""

    __slots__ = ("_format_name", "_held", "_most")

    def __init__(self, format_name: str, most: int = MAX_UNFINISHED_CHARACTERS) -> None:
        self._format_name = format_name
        self._most = most
        self._held = 0

    def hold(self, characters: int) -> None:
        """Count more characters. Raises TooMuch beyond the limit."""
        self._held += characters
        if self._held > self._most:
            raise TooMuch(texts.MUCH_UNFINISHED.format(what=self._format_name, most=self._most))

    def has_room(self, characters: int) -> bool:
        """Say whether optional characters fit into half of the limit; the other half is for required ones."""
        return self._held + characters <= self._most // 2

    def release(self, characters: int) -> None:
        """Count characters as released."""
        self._held -= characters


class UnfinishedOutput:
    """The output of one test so far. Only its head and tail are stored, so memory is bounded."""

    __slots__ = ("_budget", "_clip", "_size")

    def __init__(self, budget: UnfinishedBudget) -> None:
        self._budget = budget
        self._clip = Clip()
        self._size = ENTRY
        budget.hold(ENTRY)

    def add(self, piece: str) -> None:
        """Add the next piece. Raises TooMuch if all tests together exceed the limit."""
        self._clip.add(piece)
        growth = min(len(piece), SQUEEZE_AT + ENTRY - self._size)
        if growth > 0:
            self._size += growth
            self._budget.hold(growth)

    def finish(self) -> str:
        """Return the output, and release its characters."""
        self._budget.release(self._size)
        self._size = 0
        return self._clip.text()
