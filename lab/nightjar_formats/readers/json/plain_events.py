"""Parse JSON into the same events as ijson, for a lab without ijson: slower, but as lazily."""

from __future__ import annotations

import codecs
import json
import re  # noqa: TID251  # where ijson is not installed: a lab reads its own files
from typing import Any

from nightjar_formats.patterns.match import without_half_pairs
from nightjar_formats.patterns.possessive import possessive
from nightjar_formats.readers import texts
from nightjar_formats.strict_json import read_json

_BLANK = re.compile(r"[ \t\n\r]*")  # noqa: TID251  # nothing follows the repetition
_NUMBER = re.compile(r"[0-9.eE+-]+")  # noqa: TID251  # nothing follows the repetition
_STRING = possessive(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_WORDS = {"true": ("boolean", True), "false": ("boolean", False), "null": ("null", None)}
LONGEST_WORD = 5

_VALUE, _VALUE_OR_END, _KEY, _KEY_OR_END, _COLON, _COMMA, _DONE = range(7)
"""What may follow at this point of the text."""


class PlainEvents:
    """Parses a JSON text piece by piece; `events` collects the events until the caller removes them.

    Like ijson's yajl, it reads a string that continues in the next piece again from its beginning.
    """

    def __init__(self, *, multiple_values: bool = False) -> None:
        self.events: list[tuple[str, Any]] = []
        self._multiple = multiple_values
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self._rest = ""
        self._within: list[str] = []
        self._next = _VALUE

    def feed(self, piece: bytes) -> str | None:
        """Parse the next piece; return the fault in the text, None if there is none."""
        try:
            self._rest += self._decoder.decode(piece)
            self._read(is_end=False)
        except UnicodeDecodeError:
            return texts.NOT_UTF_8
        except ValueError as error:
            return _reason(error)
        return None

    def end(self) -> str | None:
        """End the text; return the fault at its end, None if there is none."""
        try:
            self._rest += self._decoder.decode(b"", final=True)
            self._read(is_end=True)
        except UnicodeDecodeError:
            return texts.NOT_UTF_8
        except ValueError as error:
            return _reason(error)
        return None if self._next == _DONE and not self._rest else texts.JSON_INCOMPLETE

    def _read(self, *, is_end: bool) -> None:
        text, position = self._rest, 0
        try:
            while True:
                position = _end_of(_BLANK, text, position)
                end = self._one(text, position, is_end=is_end) if position < len(text) else position
                if end == position:
                    return
                position = end
        finally:
            self._rest = text[position:]

    def _one(self, text: str, position: int, *, is_end: bool) -> int:
        """Read one punctuation mark or value; return its end, or its beginning if it continues in the next piece."""
        if self._next == _DONE and self._multiple:
            self._next = _VALUE
        mark = text[position]
        if mark in "{}[],:":
            self._mark(mark)
            return position + 1
        if mark == '"':
            return self._string(text, position)
        if self._next not in (_VALUE, _VALUE_OR_END):
            raise ValueError(texts.JSON_UNEXPECTED.format(mark=mark))
        if mark in "-0123456789":
            end = _end_of(_NUMBER, text, position)
            if end == len(text) and not is_end:
                return position
            self._value("number", read_json(text[position:end]))
            return end
        for word, (event, value) in _WORDS.items():
            if text.startswith(word, position):
                self._value(event, value)
                return position + len(word)
            if not is_end and word.startswith(text[position : position + LONGEST_WORD]):
                return position
        raise ValueError(texts.JSON_UNEXPECTED.format(mark=mark))

    def _string(self, text: str, position: int) -> int:
        if self._next not in (_VALUE, _VALUE_OR_END, _KEY, _KEY_OR_END):
            raise ValueError(texts.JSON_UNEXPECTED.format(mark='"'))
        end = _end_of(_STRING, text, position)
        if end > position:
            value = _without_halves(read_json(text[position:end]))
            if self._next in (_KEY, _KEY_OR_END):
                self.events.append(("map_key", value))
                self._next = _COLON
            else:
                self._value("string", value)
        return end

    def _mark(self, mark: str) -> None:
        expected = self._next
        if mark in "{[" and expected in (_VALUE, _VALUE_OR_END):
            self._within.append(mark)
            self.events.append(("start_map" if mark == "{" else "start_array", None))
            self._next = _KEY_OR_END if mark == "{" else _VALUE_OR_END
        elif mark == "}" and (expected == _KEY_OR_END or (expected == _COMMA and self._within[-1] == "{")):
            self._close("end_map")
        elif mark == "]" and (expected == _VALUE_OR_END or (expected == _COMMA and self._within[-1] == "[")):
            self._close("end_array")
        elif mark == ":" and expected == _COLON:
            self._next = _VALUE
        elif mark == "," and expected == _COMMA:
            self._next = _KEY if self._within[-1] == "{" else _VALUE
        else:
            raise ValueError(texts.JSON_UNEXPECTED.format(mark=mark))

    def _close(self, event: str) -> None:
        self._within.pop()
        self._value(event, None)

    def _value(self, event: str, value: Any) -> None:
        self.events.append((event, value))
        self._next = _COMMA if self._within else _DONE


def _without_halves(text: str) -> str:
    """Replace each unpaired surrogate by a question mark, as yajl does."""
    return text if text.isascii() else without_half_pairs(text, "?")


def _end_of(pattern: re.Pattern[str], text: str, position: int) -> int:
    match = pattern.match(text, position)
    return position if match is None else match.end()


def _reason(error: ValueError) -> str:
    return error.msg if isinstance(error, json.JSONDecodeError) else str(error)
