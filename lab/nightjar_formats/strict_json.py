"""Read JSON that others wrote. Python's own reader accepts more than JSON, and values that no database can store."""

from __future__ import annotations

import json
from math import isinf
from typing import Any, NoReturn

NOT_A_NUMBER = "{name} is not a number of JSON"
TOO_LARGE_A_NUMBER = "the number {text} is too large"
TOO_DEEP = "it is nested too deeply"
MOST_DIGITS = 20
"""The most characters of a number in the error for a number that is too large."""


def read_json(text: str | bytes | bytearray) -> Any:
    """Return the value of a JSON text; bytes are in UTF-8, UTF-16 or UTF-32. Numbers are finite.

    Raises ValueError for anything else: NaN and Infinity, which Python writes though they are not JSON; 1e999, which
    Python reads as infinity; and a text that is nested too deeply.
    https://www.rfc-editor.org/rfc/rfc8259#section-6
    """
    if not isinstance(text, str):
        text = text.decode(json.detect_encoding(text))
    try:
        return _DECODER.decode(text)
    except RecursionError:
        raise ValueError(TOO_DEEP) from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(NOT_A_NUMBER.format(name=name))


def _finite(text: str) -> float:
    number = float(text)
    if isinf(number):
        raise ValueError(TOO_LARGE_A_NUMBER.format(text=text if len(text) <= MOST_DIGITS else f"{text[:MOST_DIGITS]}…"))
    return number


_DECODER = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse_constant)
