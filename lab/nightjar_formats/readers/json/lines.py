"""Read JSON lines: short ones in one call, which is four times as fast, and long ones piece by piece."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator, Mapping
from typing import Any, BinaryIO

from nightjar_formats.readers import texts
from nightjar_formats.readers.json.stream import CHUNK, UTF8_BOM, EndsEarly, JsonReader, Shape
from nightjar_formats.readers.repairs import Repair, Repairs
from nightjar_formats.refused import Refused, TooMuch

SHORT_BYTES = 1 << 16
"""The most bytes of a line that is read in one call; at worst, it becomes two megabytes of empty objects."""


def json_lines(stream: BinaryIO, format_name: str, shape: Shape, repairs: Repairs) -> Iterator[tuple[int, Any]]:
    """Yield each line's number and value: all members of a short line, only those that the shape names of a long one.

    Short lines that are not JSON are ignored. Raises Refused, with the number of the line, for a long line that is not
    JSON, and if no line is JSON; TooMuch beyond a limit of JsonReader; EndsEarly if the last line is torn.
    """
    number = 0
    fault: Refused | None = None
    has_json = False
    while begin := stream.readline(SHORT_BYTES):
        number += 1
        begin = begin.removeprefix(UTF8_BOM)  # also where files were joined
        # `readline` ends a line at its limit too.
        if len(begin) == SHORT_BYTES and not begin.endswith(b"\n"):
            has_json = True
            yield number, _long(_Rest(begin, stream), texts.LINE.format(what=format_name, line=number), shape)
        elif not begin.isspace() and begin:
            try:
                value = _short(begin, texts.LINE.format(what=format_name, line=number))
            except EndsEarly:
                if fault and not has_json:
                    raise fault from None
                raise
            except Refused as refused:
                fault = fault or refused
                repairs.add(Repair.NOT_JSON, number)
                continue
            has_json = True
            yield number, value
    if fault and not has_json:
        raise fault


def mixed_lines(stream: BinaryIO, format_name: str, shape: Shape) -> Iterator[Mapping[str, Any] | str]:
    """Yield the object of each line that is one (as much as the shape names of a long one), else its text.

    A text is cut to SHORT_BYTES. Tools that write the report to standard output share it with the processes that they
    start, so lines of a log appear between those of the report, and may tear one apart. Raises TooMuch beyond a limit
    of JsonReader.
    """
    while begin := stream.readline(SHORT_BYTES):
        begin = begin.removeprefix(UTF8_BOM)  # also where files were joined
        is_object = begin.startswith(b"{")
        if len(begin) < SHORT_BYTES or begin.endswith(b"\n"):
            yield object_of(begin) if is_object else begin.decode("utf-8", "replace")
            continue
        rest, text = _Rest(begin, stream), begin.decode("utf-8", "replace")
        try:
            value = _long(rest, format_name, shape) if is_object else text
        except TooMuch:
            raise
        except Refused:
            value = text
        while rest.read(CHUNK):
            pass
        yield value


def object_of(line: bytes) -> dict[str, Any] | str:
    """Return the object of a line, or the line's text if it is not an object."""
    try:
        value = json.loads(line)  # noqa: TID251  # as below
    except (ValueError, RecursionError):
        value = None
    return value if isinstance(value, dict) else line.decode("utf-8", "replace")


def _short(line: bytes, line_name: str) -> Any:
    try:
        # pytest-reportlog writes NaN and Infinity where a test records them as properties.
        return json.loads(line)  # noqa: TID251
    except (ValueError, RecursionError) as error:
        if not line.endswith(b"\n"):
            raise EndsEarly(texts.LINE_CUT_OFF.format(where=line_name)) from None
        raise Refused(texts.LINE_NOT_JSON.format(where=line_name, reason=_reason(error))) from None


def _reason(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return texts.LINE_SYNTAX.format(reason=error.msg, column=error.colno)
    if isinstance(error, UnicodeDecodeError):
        return texts.NOT_UTF_8
    # Python refuses integers of over 4,300 digits: https://docs.python.org/3/library/stdtypes.html#int-max-str-digits
    return texts.LINE_LARGE_NUMBER if isinstance(error, ValueError) else texts.LINE_DEEP


def _long(line: _Rest, format_name: str, shape: Shape) -> Any:
    reader = JsonReader(io.BufferedReader(line, CHUNK), format_name)
    try:
        value = reader.value(shape)
        reader.end()
    except EndsEarly as error:
        if line.is_whole:
            raise Refused(str(error)) from None
        raise
    return value


class _Rest(io.RawIOBase):
    """A stream of one line whose beginning was already read from another stream."""

    def __init__(self, begin: bytes, stream: BinaryIO) -> None:
        self._left = begin
        self._stream = stream
        self.is_whole = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        """Read the rest of the line."""
        if not self._left and not self.is_whole:
            self._left = self._stream.readline(len(buffer))
        self.is_whole = self.is_whole or self._left.endswith(b"\n")
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count
