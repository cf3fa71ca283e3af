"""Escape text from outside, such as names of tests, for a terminal: it moves no cursor and begins no line."""

from __future__ import annotations

_BIDI = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_LINES = (0x2028, 0x2029)
_INVISIBLE = (*range(0x200B, 0x200E), 0x2060, 0xFEFF)
UNPRINTABLE = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))},
    **{code: f"\\u{code:04x}" for code in (*_BIDI, *_LINES, *_INVISIBLE, *range(0xD800, 0xE000), 0xFFFE, 0xFFFF)},
    0x0A: "\\n",
    0x0D: "\\r",
    0x09: "\\t",
}


def printable(text: str, most: int = 2_000) -> str:
    """Return text on one line, cut, with escapes for control characters, half surrogates and invisible characters."""
    if len(text) > most:
        text = text[: most - 1] + "…"
    return text.translate(UNPRINTABLE)
