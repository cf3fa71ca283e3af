"""Single values of a report made safe to keep: names, texts, numbers, which may be anything."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from bot.results.limits import MAX_MESSAGE, MAX_NAME, MAX_SECONDS, MAX_TEXT_HEAD, MAX_TEXT_TAIL, TooMuch

ELLIPSIS = "\n[… {count} characters left out …]\n"

_COLOUR = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")
_CONTROL_OR_SURROGATE = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_NOT_IN_NAMES = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
MAX_LINE = 10_000_000


def name(value: object) -> str:
    """Return a test's name or path, with control characters and lone surrogates as escapes; "" if it is no text.

    Raises TooMuch beyond MAX_NAME characters.
    """
    if not isinstance(value, str):
        return ""
    if len(value) > MAX_NAME:
        raise TooMuch(f"A test's name has {len(value)} characters; {MAX_NAME} are taken. It begins {value[:80]!r}")
    return _NOT_IN_NAMES.sub(lambda found: found[0].encode("unicode_escape").decode(), value)


def text(value: object) -> str:
    """Return a failure's text without colours, its middle left out beyond MAX_TEXT_HEAD and MAX_TEXT_TAIL."""
    return cut(_clean(value)) if isinstance(value, str) else ""


def message(value: object) -> str:
    """Return a message without colours, cut off at MAX_MESSAGE."""
    return _clean(value[: 2 * MAX_MESSAGE]).strip()[:MAX_MESSAGE] if isinstance(value, str) else ""


def cut(value: str) -> str:
    """Leave out the middle of a long text: how it begins and how it ends tell the most."""
    left_out = len(value) - MAX_TEXT_HEAD - MAX_TEXT_TAIL
    if left_out <= 0:
        return value
    return value[:MAX_TEXT_HEAD] + ELLIPSIS.format(count=left_out) + value[-MAX_TEXT_TAIL:]


def number(value: object) -> float | None:
    """Return a number that stands as one or as text, NaN and infinities included; None for anything else."""
    if isinstance(value, bool) or value is None or value == "":
        return None
    try:
        return float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, ArithmeticError):
        return None


def seconds(value: object, unit: float = 1.0) -> float | None:
    """Return a duration counted in `unit` seconds as seconds; None for what no duration can be."""
    found = number(value)
    if found is None or not math.isfinite(found) or not 0 <= found * unit <= MAX_SECONDS:
        return None
    return found * unit


def line(value: object, first: int = 1) -> int | None:
    """Return a line as counted from 1, of a format that counts from `first`; None for what no line can be."""
    found = number(value)
    if found is None or not math.isfinite(found) or found != int(found) or not first <= found <= MAX_LINE:
        return None
    return int(found) + 1 - first


def mapping(value: object) -> Mapping[str, Any]:
    """Return an object's members; none if it is no object."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> list[Any]:
    """Return an array's items; none if it is no array."""
    return value if isinstance(value, list) else []


def _clean(value: str) -> str:
    value = _COLOUR.sub("", value.replace("\r\n", "\n"))
    return _CONTROL_OR_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
