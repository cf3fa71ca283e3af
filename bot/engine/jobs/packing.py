"""Compress the bodies of deliveries for storage, unless they are small."""

from __future__ import annotations

import json
import threading
from typing import Any, cast

import zstandard

SMALL = 2048
"""Bytes up to which a body is stored uncompressed: its row then fits on one page of the database."""

LEVEL = 1
"""zstd's fastest positive level; every level compresses a payload to about a sixth."""


class _Compressors(threading.local):
    """The compressors of a thread: threads must not share one, and creating one costs half as much as its use."""

    def __init__(self) -> None:
        self.compressor = zstandard.ZstdCompressor(LEVEL)
        self.decompressor = zstandard.ZstdDecompressor()


_compressors = _Compressors()


def packed(body: bytes | bytearray) -> bytes:
    """Return a body, which is a JSON object, in its stored form."""
    return bytes(body) if len(body) <= SMALL else _compressors.compressor.compress(body)


def unpacked(stored: bytes) -> dict[str, Any]:
    """Return the JSON object of a stored body."""
    # No JSON text begins with the bytes of a frame (https://www.rfc-editor.org/rfc/rfc8878#section-3.1.1).
    if stored.startswith(zstandard.FRAME_HEADER):
        stored = _compressors.decompressor.decompress(stored)
    return cast("dict[str, Any]", json.loads(stored))  # noqa: TID251  # verified before it was stored
