"""Typed, tolerant reading of GitHub's webhook payloads and API answers.

Handlers read only the fields that they use, when they use them, so a change in another part of a payload never loses an
event. An error names the missing field by its path: `pull_request.head.sha`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from bot.core.errors import AnswerError, PayloadError

Json = Mapping[str, Any]
_OBJECT = (dict, Mapping)
"""The types of JSON objects. Almost all are of the first, which costs a tenth of the second to check."""


class AnsweredObject(dict[str, Any]):
    """A JSON object in an answer of GitHub's; its type lets `Payload` raise `AnswerError` for it."""


class AnsweredList(list[Any]):
    """A JSON list in an answer of GitHub's."""


def answered(data: Any) -> Any:
    """Mark a JSON value as an answer of GitHub's; return anything but an object or a list unchanged."""
    if isinstance(data, dict):
        return AnsweredObject(data)
    return AnsweredList(map(answered, data)) if isinstance(data, list) else data


class Payload:
    """Read values of a JSON object by path; every error names the whole path from the root.

    A value that is missing in a delivery or a record raises `PayloadError`, which is final. A value that is missing in
    an answer of GitHub's raises `AnswerError`, and the request is tried again. The type of the data says which it is,
    so no caller can confuse the two; the docstrings below say `PayloadError` for both.
    """

    __slots__ = ("_data", "_is_answer", "_place")

    def __init__(self, data: Any, place: str = "", *, is_answer: bool = False) -> None:
        self._data = data
        self._place = place
        self._is_answer = is_answer or isinstance(data, AnsweredObject | AnsweredList)

    def _wrong(self, path: str, problem: str) -> AnswerError | PayloadError:
        return (AnswerError if self._is_answer else PayloadError)(path, problem)

    def __repr__(self) -> str:
        return f"Payload({self._place or '(root)'})"

    @property
    def raw(self) -> Any:
        """The JSON value itself."""
        return self._data

    def _path(self, *keys: str) -> str:
        return ".".join(key for key in (self._place, *keys) if key)

    def _find(self, keys: tuple[str, ...]) -> Any:
        value = self._data
        for depth, key in enumerate(keys):
            if value is None:
                return None
            if not isinstance(value, _OBJECT):
                raise self._wrong(self._path(*keys[:depth]), f"is {_kind(value)} where an object was expected")
            value = value.get(key)
        return value

    def has(self, *keys: str) -> bool:
        """Return whether a value other than null stands at the path."""
        value = self._data
        for key in keys:
            if not isinstance(value, _OBJECT) or value.get(key) is None:
                return False
            value = value[key]
        return True

    def at(self, *keys: str) -> Payload:
        """Return the object at the path; raise `PayloadError` if there is none."""
        value = self._find(keys)
        if not isinstance(value, _OBJECT):
            raise self._wrong(self._path(*keys), f"is {_kind(value)} where an object was expected")
        return Payload(value, self._path(*keys), is_answer=self._is_answer)

    def string(self, *keys: str) -> str:
        """Return the text at the path; raise `PayloadError` if there is none."""
        value = self._find(keys)
        if not isinstance(value, str):
            raise self._wrong(self._path(*keys), f"is {_kind(value)} where text was expected")
        return value

    def text(self, *keys: str) -> str:
        """Return the text at the path, empty if it is missing or null (bodies often are)."""
        return self.string(*keys) if self.has(*keys) else ""

    def integer(self, *keys: str) -> int:
        """Return the whole number at the path; raise `PayloadError` if there is none."""
        value = self._find(keys)
        # In Python, True is an int.
        if not isinstance(value, int) or isinstance(value, bool):
            raise self._wrong(self._path(*keys), f"is {_kind(value)} where a whole number was expected")
        return value

    def flag(self, *keys: str) -> bool:
        """Return the truth value at the path, false if it is missing or null."""
        value = self._find(keys)
        if value is not None and not isinstance(value, bool):
            raise self._wrong(self._path(*keys), f"is {_kind(value)} where true or false was expected")
        return bool(value)

    def items(self, *keys: str) -> Iterator[Payload]:
        """Yield the objects of the list at the path; a missing list is empty."""
        value = self._find(keys)
        if value is None:
            return
        if not isinstance(value, list):
            raise self._wrong(self._path(*keys), f"is {_kind(value)} where a list was expected")
        for index, item in enumerate(value):
            yield Payload(item, f"{self._path(*keys)}[{index}]", is_answer=self._is_answer)


def _kind(value: object) -> str:
    names = {str: "text", bool: "true or false", int: "a number", float: "a number", list: "a list", dict: "an object"}
    return "missing" if value is None else names.get(type(value), type(value).__name__)
