r"""Encode text so that both databases store it unchanged, whatever people wrote.

PostgreSQL's `text` and `jsonb` refuse U+0000 and lone surrogates, and SQLite's driver refuses the latter; GitHub's
payloads may hold both, as the JSON escapes `\u0000` and `\ud800`. So each such character is stored as U+FDD0 followed
by its four hexadecimal digits. U+FDD0 is one of Unicode's noncharacters, which are reserved for a program's own use
(https://www.unicode.org/faq/private_use.html#noncharacters); a U+FDD0 in the text itself is
stored the same way, so decoding is unambiguous. The connectors do this for every string that they store or return.
"""

from __future__ import annotations

import json
from typing import TypeAlias

JSONValue: TypeAlias = "dict[str, JSONValue] | list[JSONValue] | str | int | float | bool | None"
JSONDict = dict[str, JSONValue]

ESCAPE = "\ufdd0"
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
_HALF_PAIRS = {half: f"{ESCAPE}{half:04x}" for half in range(0xD800, 0xE000)}


def storable(text: str) -> str:
    """Encode text so that both databases can store it."""
    if text.isascii() and "\x00" not in text:
        return text
    text = text.replace(ESCAPE, f"{ESCAPE}fdd0").replace("\x00", f"{ESCAPE}0000")
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.translate(_HALF_PAIRS)
    return text


def original(text: str) -> str:
    """Decode the result of `storable`."""
    first, *escaped = text.split(ESCAPE)
    return "".join([first, *(f"{chr(int(part[:4], 16))}{part[4:]}" for part in escaped)]) if escaped else text


def dumps(value: JSONValue) -> str:
    """Write a value as JSON that both databases can store.

    Raises ValueError for NaN and infinity, which are not JSON (RFC 8259, section 6).
    """
    written = storable(_ENCODER.encode(value))
    if "\\u0000" in written:
        # Behind an escaped backslash, `u0000` is five characters like any other.
        sections = written.split("\\\\")
        written = "\\\\".join(section.replace("\\u0000", f"{ESCAPE}0000") for section in sections)
    return written


def loads(written: str | bytes) -> JSONValue:
    """Read the JSON that `dumps` wrote."""
    text = written.decode() if isinstance(written, bytes) else written
    value: JSONValue = json.loads(text.replace(ESCAPE, "\\u"))  # noqa: TID251  # `dumps` wrote it
    return value
