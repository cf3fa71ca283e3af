"""Read the YAML block after a TAP result: only the few keys that say why and where a test failed.

---
message: 'expected 3, got 4'
at:
  file: dma.c
  line: 12
...
"""

from __future__ import annotations

from typing import NamedTuple

from nightjar_formats.patterns import Pattern
from nightjar_formats.readers import texts, values

_KEY = Pattern(r"([A-Za-z_]\w{0,40}):(?:\s+(.*))?$")
_PLACE = Pattern(r"(?:^|[\s(])(?:file://)?([^\s():]+):(\d{1,9})(?::\d{1,9})?\)?$")
_BLOCKS = frozenset({"|", "|-", "|+", ">", ">-", ">+"})
_WANTED = frozenset(
    {"message", "error", "at", "location", "file", "line", "duration_ms", "failureType", "expected", "actual", "found"}
)
MAX_LINES = 20
"""The most lines of one value that are read."""


class TapDiagnostics(NamedTuple):
    """The content of a block."""

    message: str = ""
    path: str = ""
    line: int | None = None
    seconds: float | None = None
    is_timeout: bool = False


def read_diagnostics(block: str) -> TapDiagnostics:
    """Read a block, without its first and last line."""
    fields = _values(block)
    message = fields.get("message") or fields.get("error") or ""
    expected, actual = fields.get("expected"), fields.get("actual", fields.get("found"))
    if not message and expected is not None and actual is not None:
        message = texts.TAP_EXPECTED.format(wanted=expected, found=actual)
    path, line = fields.get("file", ""), values.line(fields.get("line"))
    place = _PLACE.search(fields.get("location") or fields.get("at") or "")
    if not path and place is not None:
        path, line = place[1], values.line(place[2])
    return TapDiagnostics(
        message=values.message(message),
        path=values.name(path),
        line=line if path else None,
        seconds=values.seconds(fields.get("duration_ms"), 0.001),
        # Node's test runner: https://nodejs.org/api/errors.html#err_test_failure
        is_timeout=fields.get("failureType") == "testTimeoutFailure",
    )


def _values(block: str) -> dict[str, str]:
    """Return the values of the wanted keys of the block, and of `file` and `line` below `at`."""
    fields: dict[str, str] = {}
    pieces: list[str] = []
    base: int | None = None
    key = ""
    for line in block.splitlines():
        body = line.lstrip(" ")
        if not body:
            continue
        indent = len(line) - len(body)
        base = indent if base is None else base
        pair = _KEY.fullmatch(body) if indent == base or key == "at" else None
        if pair is None:
            if key and len(pieces) < MAX_LINES:
                pieces.append(body)
            continue
        if key and pieces:
            fields.setdefault(key, " ".join(pieces))
        if indent == base or pair[1] in ("file", "line"):
            key, pieces = (pair[1] if pair[1] in _WANTED and indent == base else key if indent != base else ""), []
            value = (pair[2] or "").strip()
            if pair[1] in _WANTED and value and value not in _BLOCKS:
                fields.setdefault(pair[1], _unquoted(value))
    if key and pieces:
        fields.setdefault(key, " ".join(pieces))
    return fields


def _unquoted(value: str) -> str:
    if len(value) > 1 and value[0] == value[-1] and value[0] in "'\"":
        inner = value[1:-1]
        return inner.replace("''", "'") if value[0] == "'" else inner.replace('\\"', '"')
    return value
