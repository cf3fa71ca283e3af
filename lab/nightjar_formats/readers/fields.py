"""Read fields that all formats share: durations, one-line messages, long texts."""

from __future__ import annotations

from nightjar_formats.limits import MAX_MESSAGE, MAX_SECONDS, MAX_TEXT_HEAD, MAX_TEXT_TAIL
from nightjar_formats.readers import texts

HEAD = MAX_TEXT_HEAD - len(texts.LEFT_OUT) - 10
"""Characters of the head: together with the tail and the words between them, the text stays within the limit."""
SQUEEZE_AT = 8 * (MAX_TEXT_HEAD + MAX_TEXT_TAIL)
"""The most characters that are collected before the middle of a text is dropped."""
MESSAGE_READ = 4 * MAX_MESSAGE
LONGEST_NUMBER = 40


def seconds(value: object) -> float | None:
    """Read a duration in seconds; None if it is missing or invalid: negative, infinite, or longer than a week.

    A text may have commas, see `ungrouped`.
    """
    if isinstance(value, str) and "," in value:
        value = ungrouped(value)
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return number if 0 <= number <= MAX_SECONDS else None


def ungrouped(number: str) -> str:
    """Return a number with commas as Python reads it.

    Java's reporters group digits in the English way; others write a decimal comma. A comma before three digits groups
    them, unless nothing or 0 stands before it.

    >>> [ungrouped(number) for number in ("1,234.567", "1,234", "1.234,567", "0,123", "12,5")]
    ['1234.567', '1234', '1234.567', '0.123', '12.5']
    """
    integer_part, _, decimals = number[:LONGEST_NUMBER].rpartition(",")
    if "." not in decimals and ("." in integer_part or len(decimals) != 3 or integer_part.strip() in ("", "0")):
        return f"{integer_part.replace('.', '').replace(',', '')}.{decimals}"
    return number.replace(",", "")


def one_line(text: str) -> str:
    """Put a message on one line, and cut it to `MAX_MESSAGE` characters."""
    if len(text) <= MAX_MESSAGE and text.isprintable():
        return text.strip()
    line = " ".join(text[:MESSAGE_READ].split())
    return line if len(line) <= MAX_MESSAGE else line[: MAX_MESSAGE - 1] + "…"


def cut(text: str) -> str:
    """Cut a long text to its head and tail, and say between them how many characters were left out."""
    if len(text) <= MAX_TEXT_HEAD + MAX_TEXT_TAIL:
        return text
    clip = Clip()
    clip.add(text)
    return clip.text()


class Clip:
    """A text that arrives in pieces. Only its head and tail are stored, so memory is bounded."""

    __slots__ = ("_pieces", "_removed", "_size")

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._size = 0
        self._removed = 0

    def add(self, piece: str) -> None:
        """Add the next piece."""
        self._pieces.append(piece)
        self._size += len(piece)
        if self._size > SQUEEZE_AT:
            self._squeeze()

    def text(self) -> str:
        """Return the text; if it was too long, its head and tail with a line between them that says so."""
        if self._size > MAX_TEXT_HEAD + MAX_TEXT_TAIL or self._removed:
            self._squeeze()
            head, tail = self._pieces
            return head + texts.LEFT_OUT.format(removed=self._removed) + tail
        return "".join(self._pieces)

    def _squeeze(self) -> None:
        text = "".join(self._pieces)
        self._removed += len(text) - HEAD - MAX_TEXT_TAIL
        self._pieces = [text[:HEAD], text[-MAX_TEXT_TAIL:]]
        self._size = HEAD + MAX_TEXT_TAIL
