"""Show text from outside on a terminal without any effect on the terminal."""

from __future__ import annotations

# Control characters, those that turn the direction of text around (https://trojansource.codes), and half surrogates,
# which no encoding takes.
_CODES = (
    *range(0x20),
    *range(0x7F, 0xA0),
    *(0x200E, 0x200F),
    *range(0x2028, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),
)
_CONTROL = {code: ascii(chr(code))[1:-1] for code in _CODES}


def escape_controls(text: str) -> str:
    """Show control characters as escapes instead of letting a terminal obey them."""
    return text.translate(_CONTROL)


def quoted_text(text: str) -> str:
    """Return a text in double quotes, as messages show what somebody wrote, with escapes for control characters."""
    return f'"{escape_controls(text)}"'
