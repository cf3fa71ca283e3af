"""Read single values of JSON and CSV, which may have any type and any content."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from nightjar_formats.limits import MAX_RAW_NAME
from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import fields, texts
from nightjar_formats.refused import TooMuch
from nightjar_formats.terminal import quoted_text

MAX_LINE = 10_000_000

COLOR = Pattern(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_LINE_END = Pattern(r"\r+\n?")
"""A line end of Windows has another CR if the text was converted twice."""
_UNREADABLE = dict.fromkeys(
    (*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), *range(0xD800, 0xE000)), "\N{REPLACEMENT CHARACTER}"
)


def name(value: object) -> str:
    """Return the name of a test, file or class unchanged; "" if it is not a text.

    Raises TooMuch beyond MAX_RAW_NAME characters.
    """
    if not isinstance(value, str):
        return ""
    if len(value) > MAX_RAW_NAME:
        raise TooMuch(texts.LONG_NAME.format(length=len(value), limit=MAX_RAW_NAME, start=quoted_text(value[:80])))
    return value


def text(value: object) -> str:
    """Return a failure's text without colors and control characters, cut to its head and tail."""
    return fields.cut(_readable(value)) if isinstance(value, str) else ""


def message(value: object) -> str:
    """Return a message on one line, without colors and control characters."""
    return fields.one_line(_readable(value[: fields.MESSAGE_READ])) if isinstance(value, str) else ""


def number(value: object) -> float | None:
    """Return a number, also from a text, including NaN and infinities; None for anything else."""
    # float(True) is 1.0.
    if not isinstance(value, bool) and value is not None and value != "":
        try:
            return float(value)  # type: ignore[arg-type]
        # An integer of 400 digits raises OverflowError, which is an ArithmeticError.
        except (TypeError, ValueError, ArithmeticError):
            pass
    return None


def seconds(value: object, unit: float = 1.0) -> float | None:
    """Return a duration in seconds; `value` is in units of `unit` seconds. None for anything else."""
    found = number(value)
    return None if found is None else fields.seconds(found * unit)


def line(value: object, first: int = 1) -> int | None:
    """Return a line number counted from 1; the format counts from `first`. None for anything else."""
    found = number(value)
    if found is None or not math.isfinite(found) or found != int(found) or not first <= found <= MAX_LINE:
        return None
    return int(found) + 1 - first


def count(value: object) -> int:
    """Return a count; 0 for anything else."""
    return line(value) or 0


def mapping(value: object) -> Mapping[str, Any]:
    """Return an object's members; empty for anything else."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> list[Any]:
    """Return an array's items; empty for anything else."""
    return value if isinstance(value, list) else []


def _readable(value: str) -> str:
    if "\r" in value:
        value = _LINE_END.sub("\n", value)
    if "\x1b" in value:
        value = COLOR.sub("", value)
    return value.translate(_UNREADABLE)
