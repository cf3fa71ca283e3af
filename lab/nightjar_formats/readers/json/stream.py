"""Read JSON of any length in constant memory: only the requested parts become values, and the rest is skipped."""

from __future__ import annotations

import re  # noqa: TID251  # RE2 has a call for each string of a report
from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping
from itertools import chain
from typing import Any, BinaryIO

from nightjar_formats.limits import MAX_JSON_DEPTH, MAX_RETAINED_CHARACTERS, MAX_STRING_BYTES
from nightjar_formats.patterns import possessive
from nightjar_formats.readers import texts
from nightjar_formats.readers.fields import cut
from nightjar_formats.readers.json.ijson_events import IjsonEvents
from nightjar_formats.refused import Refused, TooMuch

__all__ = [
    "ANY",
    "CHUNK",
    "END",
    "ITEMS",
    "NUMBERS",
    "SCALAR",
    "UTF8_BOM",
    "EndsEarly",
    "JsonReader",
    "Shape",
    "first_keys",
]

CHUNK, MAX_PIECE = 1 << 16, 1 << 21
"""Bytes per read, and the most per call of the parser: yajl reads a string that continues again from its start."""
END = b""
UTF8_BOM = b"\xef\xbb\xbf"

Shape = Mapping[str, "Shape"]
"""The members of an object that are read, each with its own shape; the key ITEMS has the shape of an array's items.
A scalar is always read, whatever the shape, because reports write null, an object or a text for the same member."""
ITEMS = "[]"
SCALAR: Shape = {}
NUMBERS: Shape = {ITEMS: SCALAR}
"""An array of numbers, of which some are read, evenly chosen, if there are more than MOST_NUMBERS."""
MOST_NUMBERS = 1_000
ANY = "*"
"""The key of a shape that applies to members which the shape does not name."""
_VALUE_COST = 64
"""Characters that each value costs besides its own, so that a million empty values exceed the limit too."""

_OPENING = frozenset({"start_map", "start_array"})
_CLOSING = frozenset({"end_map", "end_array"})

# yajl refuses integers beyond 64 bits, and NaN and Infinity, which Python's json module writes.
_LONG_INTEGER = re.compile(rb"[0-9](?<![.0-9][0-9])[0-9]{18}")  # noqa: TID251  # of one length
_STRING_OR_NO_NUMBER = possessive(
    rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|NaN|-?Infinity|(?<![0-9.eE+-])-?[0-9]{19,}+(?![0-9.eE])', re.DOTALL
)
_OF_NUMBERS = b"0123456789+-.eENaInfity"
MAX_NUMBER_BYTES = 1000


class EndsEarly(Refused):
    """The file ends within a value."""


class JsonReader:
    """A position in a JSON text; every method reads the next value.

    The values that `value` returns have at most MAX_RETAINED_CHARACTERS together. Long texts within them are cut in the
    middle, the last of several members with one name counts, and NaN and infinities become None. Raises Refused if the
    text is not JSON or not what the caller asked for, EndsEarly if it is cut off, TooMuch beyond a limit.
    """

    def __init__(self, stream: BinaryIO, format_name: str) -> None:
        self._format_name = format_name
        self._events = self._parsed(stream)
        self._retained = 0
        self._byte = 0

    def members(self) -> Iterator[str]:
        """Yield the names of an object's members. The caller must read each value before it takes the next name."""
        event, _ = self._next()
        if event != "start_map":
            raise Refused(self._unexpected(texts.JSON_NO_OBJECT, event))
        for event, value in self._events:
            if event == "end_map":
                return
            yield value

    def items(self, shape: Shape) -> Iterator[Any]:
        """Yield an array's items, as `value` returns them; nothing for null."""
        event, value = self._next()
        if event == "null":
            return
        if event != "start_array":
            raise Refused(self._unexpected(texts.JSON_NO_ARRAY, event))
        for event, value in self._events:
            if event == "end_array":
                return
            self._retained = 0
            yield self._built(event, value, shape)

    def value(self, shape: Shape) -> Any:
        """Read the next value; return the parts of it that the shape names."""
        event, value = self._next()
        self._retained = 0
        return self._built(event, value, shape)

    def skip(self) -> None:
        """Skip the next value."""
        event, _ = self._next()
        self._skip(event)

    def end(self) -> None:
        """Read to the end of the file; raise if another value follows."""
        for event, _ in self._events:
            raise Refused(self._unexpected(texts.JSON_NOT_AT_END, event))

    def place(self) -> str:
        """Describe the current position, for error texts."""
        return texts.JSON_WHERE.format(size=CHUNK >> 10, byte=self._byte)

    def _unexpected(self, text: str, event: str) -> str:
        return self._here(text, found=texts.JSON_FOUND.get(event, event))

    def _here(self, text: str, **fields: object) -> str:
        return text.format(what=self._format_name, where=self.place(), **fields)

    def _next(self) -> tuple[str, Any]:
        if (event := next(self._events, None)) is not None:
            return event
        raise EndsEarly(texts.JSON_CUT_OFF.format(what=self._format_name))

    def _built(self, event: str, value: Any, shape: Shape) -> Any:
        self._retained += _VALUE_COST
        if event == "string":
            value = cut(value)
            self._retained += len(value)
        if self._retained > MAX_RETAINED_CHARACTERS:
            raise TooMuch(self._here(texts.JSON_LONG_ENTRY, values=MAX_RETAINED_CHARACTERS // _VALUE_COST))
        if event == "start_map":
            return self._object(shape)
        if event == "start_array":
            return self._numbers() if shape is NUMBERS else self._array(shape)
        return value

    def _object(self, shape: Shape) -> dict[str, Any]:
        built: dict[str, Any] = {}
        for event, key in self._events:
            if event == "end_map":
                break
            event, value = self._next()
            if key in shape:
                built[key] = self._built(event, value, shape[key])
            elif ANY in shape:
                built[key] = self._built(event, value, shape[ANY])
            else:
                self._skip(event)
        return built

    def _array(self, shape: Shape) -> list[Any]:
        built: list[Any] = []
        inner = shape.get(ITEMS)
        for event, value in self._events:
            if event == "end_array":
                break
            if inner is None:
                self._skip(event)
            else:
                built.append(self._built(event, value, inner))
        return built

    def _numbers(self) -> list[Any]:
        numbers: list[Any] = []
        count, step = 0, 1
        for event, value in self._events:
            if event == "end_array":
                break
            if event == "number":
                if count % step == 0:
                    numbers.append(value)
                count += 1
                if len(numbers) > MOST_NUMBERS:
                    numbers, step = numbers[::2], 2 * step
            else:
                self._skip(event)
        self._retained += _VALUE_COST * len(numbers)
        return numbers

    def _skip(self, event: str) -> None:
        if event not in _OPENING:
            return
        depth = 1
        for event, _ in self._events:
            if event in _OPENING:
                depth += 1
            elif event in _CLOSING:
                depth -= 1
                if not depth:
                    return

    def _parsed(self, stream: BinaryIO) -> Generator[tuple[str, Any], None, None]:
        """Yield the parser's events; check their depth and the length of text between two events."""
        parser = IjsonEvents()
        events = parser.events
        depth = silent = 0
        waiting, has_ended = b"", False
        chunks = _numbers_only(_without_bom(iter(lambda: stream.read(CHUNK), b"")), self._format_name)
        for chunk in chain(chunks, (END,)):
            waiting += chunk
            if silent + len(waiting) > MAX_STRING_BYTES:
                raise TooMuch(self._here(texts.JSON_LONG_STRING))
            if not waiting or (chunk is not END and len(waiting) < min(silent, MAX_PIECE)):
                continue
            error = parser.feed(waiting)
            silent = 0 if events else silent + len(waiting)
            for event in events:
                if event[0] in _OPENING:
                    depth += 1
                    if depth > MAX_JSON_DEPTH:
                        raise TooMuch(self._here(texts.JSON_DEEP))
                elif event[0] in _CLOSING:
                    depth -= 1
                    has_ended = not depth
                yield event
            del events[:]
            if error:
                raise Refused(self._here(texts.JSON_INVALID, error=error))
            self._byte += len(waiting)
            waiting = b""
        error = parser.end()
        yield from events
        # Behind the end of the text, the parser waits for the end of a number or of a word.
        if error and has_ended:
            raise Refused(self._here(texts.JSON_INVALID, error=texts.JSON_MORE))
        if error:
            raise EndsEarly(texts.JSON_CUT_OFF_AFTER.format(what=self._format_name, count=self._byte))


def first_keys(head: bytes) -> Mapping[str, set[str]]:
    """Return the names of the members at the beginning of a JSON text.

    The key "" has the members of the outermost object; the name of a member has those of the object that it holds.
    """
    parser = IjsonEvents(multiple_values=True)
    parser.feed(b"".join(_numbers_only(iter((head,)), "JSON")))
    keys: dict[str, set[str]] = defaultdict(set)
    depth, outer = 0, ""
    for event, value in parser.events:
        depth += (event in _OPENING) - (event in _CLOSING)
        if event == "map_key" and depth == 1:
            outer = value
            keys[""].add(outer)
        elif event == "map_key" and depth == 2:
            keys[outer].add(value)
        if not depth:
            break
    return keys


def _without_bom(chunks: Iterator[bytes]) -> Iterator[bytes]:
    yield next(chunks, b"").removeprefix(UTF8_BOM)
    yield from chunks


def _numbers_only(chunks: Iterator[bytes], format_name: str) -> Iterator[bytes]:
    """Replace numbers outside strings by null if JSON or 64 bits cannot hold them.

    The end of a chunk is held back if the next chunk decides its meaning: a backslash, or the beginning of a number.
    """
    held, within_string = b"", False
    for piece in chunks:
        chunk = held + piece
        escapes = (len(chunk) - len(chunk.rstrip(b"\\"))) % 2
        ends_within = within_string ^ bool(_quotes(chunk[: len(chunk) - escapes]) % 2)
        end = len(chunk) - escapes if ends_within else len(chunk.rstrip(_OF_NUMBERS))
        held = chunk[end:]
        if len(held) > MAX_NUMBER_BYTES:
            raise Refused(texts.JSON_LONG_NUMBER.format(what=format_name, most=MAX_NUMBER_BYTES))
        yield _with_null(chunk[:end], within_string)
        within_string = ends_within
    yield _with_null(held, within_string)


def _quotes(chunk: bytes) -> int:
    """Count the quotes that begin or end a string; escaped quotes do not."""
    return chunk.replace(b"\\\\", b"").replace(b'\\"', b"").count(b'"')


def _with_null(chunk: bytes, within_string: bool) -> bytes:
    if b"NaN" not in chunk and b"Infinity" not in chunk and not _LONG_INTEGER.search(chunk):
        return chunk
    opened = b'"' if within_string else b""
    return _STRING_OR_NO_NUMBER.sub(_null_for_number, opened + chunk)[len(opened) :]


def _null_for_number(match: re.Match[bytes]) -> bytes:
    return match[0] if match[0].startswith(b'"') else b"null"
