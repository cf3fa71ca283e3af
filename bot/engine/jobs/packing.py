"""Bodies of deliveries as they are stored: compressed, unless they are small."""

from __future__ import annotations

import json
import threading
from typing import Any, cast

import zstandard

SMALL = 2048
"""Bytes up to which a body is stored as it is: its row stays on one page of the database."""

LEVEL = 1
"""zstd's fastest level but the negative ones: a payload becomes about a sixth either way."""


class _Own(threading.local):
    """What each thread compresses with: neither may be used by two at a time, and to make one costs half of its use."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_own = _Own()


def packed(body: bytes | bytearray) -> bytes:
    """Return a body, which is a JSON object, as it is stored."""
    return bytes(body) if len(body) <= SMALL else _own.compressor.compress(body)


def unpacked(stored: bytes) -> dict[str, Any]:
    """Return the JSON object of a stored body."""
    # No JSON text begins with the bytes of a frame (https://www.rfc-editor.org/rfc/rfc8878#section-3.1.1).
    if stored.startswith(zstandard.FRAME_HEADER):
        stored = _own.decompressor.decompress(stored)
    return cast("dict[str, Any]", json.loads(stored))  # noqa: TID251  # verified before it was stored
