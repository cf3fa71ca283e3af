"""Compress the bodies of deliveries for storage, unless they are small."""

from __future__ import annotations

import json
import threading
from typing import Any, cast

from nightjar_formats import zstd

SMALL = 2048
"""Bytes up to which a body is stored uncompressed: its row then fits on one page of the database."""

LEVEL = 1
"""zstd's fastest positive level; every level compresses a payload to about a sixth."""


class _PerThread(threading.local):
    """The compressor of a thread: threads must not share one, and creating one costs as much as its use."""

    def __init__(self) -> None:
        self.compressor = zstd.ZstdCompressor(LEVEL)


_PER_THREAD = _PerThread()


def packed(body: bytes | bytearray) -> bytes:
    """Return a body, which is a JSON object, in its stored form."""
    if len(body) <= SMALL:
        return bytes(body)
    return _PER_THREAD.compressor.compress(body, mode=zstd.ZstdCompressor.FLUSH_FRAME)


def unpacked(stored: bytes) -> dict[str, Any]:
    """Return the JSON object of a stored body."""
    # No JSON text begins with the bytes of a frame.
    if stored.startswith(zstd.FRAME_MAGIC):
        stored = zstd.decompress(stored)
    return cast("dict[str, Any]", json.loads(stored))  # noqa: TID251  # verified before it was stored
