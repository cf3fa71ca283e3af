r"""Text that both databases hold unharmed, whatever people wrote.

PostgreSQL's `text` and `jsonb` refuse U+0000 and lone surrogates, and SQLite's driver refuses the latter; GitHub's
payloads may hold both, as the JSON escapes `\u0000` and `\ud800`. So each such character is stored as U+FDD0 followed
by its four hexadecimal digits. U+FDD0 is one of Unicode's noncharacters, which are kept for a program's own use
(https://www.unicode.org/faq/private_use.html#noncharacters); where it occurs itself it is written the same way, so
nothing is ever mistaken. The connectors do this for every string that they store or return.
"""

import json
import re

from procrastinate.types import JSONValue

ESCAPE = "\ufdd0"
_UNSTORABLE = re.compile("[\x00\ud800-\udfff\ufdd0]")
_ESCAPED = re.compile(f"{ESCAPE}([0-9a-f]{{4}})")
_JSON_ESCAPE = re.compile(r"\\(u0000|.)")


def storable(text: str) -> str:
    """Return text as both databases can hold it."""
    if text.isascii() and "\x00" not in text:
        return text
    return _UNSTORABLE.sub(lambda found: f"{ESCAPE}{ord(found[0]):04x}", text)


def original(text: str) -> str:
    """Return what `storable` was given."""
    if ESCAPE not in text:
        return text
    return _ESCAPED.sub(lambda found: chr(int(found[1], 16)), text)


def dumps(value: JSONValue) -> str:
    """Write a value as JSON that both databases can hold.

    Raises ValueError for NaN and infinity, which are not JSON (RFC 8259, section 6).
    """
    written = storable(json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")))
    if "\\u0000" in written:
        written = _JSON_ESCAPE.sub(lambda found: f"{ESCAPE}0000" if found[1] == "u0000" else found[0], written)
    return written


def loads(written: str | bytes) -> JSONValue:
    """Read what `dumps` wrote."""
    text = written.decode() if isinstance(written, bytes) else written
    if ESCAPE in text:
        text = _ESCAPED.sub(r"\\u\1", text)
    value: JSONValue = json.loads(text)
    return value
