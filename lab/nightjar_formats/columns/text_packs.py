"""Store texts of failures, many in one compressed pack: texts of one run are similar, so each costs a few bytes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from nightjar_formats import zstd

LEVEL = 3
"""The level of compression. On real failures' texts, a higher level takes longer and saves almost nothing."""
PACK_BYTES = 1 << 17
"""Bytes of texts after which a pack is full; reading one text inflates its whole pack."""


class TextPack(NamedTuple):
    """`size` texts, compressed together in `blob`."""

    size: int
    blob: bytes

    @property
    def is_full(self) -> bool:
        """Whether packing its texts with others would save little."""
        return 2 * (zstd.get_frame_info(self.blob).decompressed_size or 0) >= PACK_BYTES


class TextPacker:
    """Puts texts into packs as they come."""

    def __init__(self) -> None:
        self._packs: list[TextPack] = []
        self._texts: list[bytes] = []
        self._size = 0

    def add(self, text: bytes) -> None:
        """Add a text."""
        self._texts.append(text)
        self._size += len(text)
        if self._size >= PACK_BYTES:
            self._flush()

    def add_pack(self, pack: TextPack) -> None:
        """Add the texts of a pack; a full pack is added without unpacking it."""
        if pack.is_full:
            self._flush()
            self._packs.append(pack)
            return
        for text in unpacked(pack.blob):
            self.add(text)

    def finish(self) -> list[TextPack]:
        """Return all packs; their texts are in the order in which they were added."""
        self._flush()
        return self._packs

    def _flush(self) -> None:
        if self._texts:
            self._packs.append(TextPack(len(self._texts), _packed(self._texts)))
            self._texts, self._size = [], 0


def unpacked(blob: bytes) -> list[bytes]:
    """Return the texts of a pack."""
    data = zstd.decompress(blob)
    (count,) = struct.unpack_from("<I", data)
    lengths = struct.unpack_from(f"<{count}I", data, 4)
    texts, begin = [], 4 + 4 * count
    for length in lengths:
        texts.append(data[begin : begin + length])
        begin += length
    return texts


def _packed(texts: Sequence[bytes]) -> bytes:
    head = struct.pack(f"<{len(texts) + 1}I", len(texts), *map(len, texts))
    return zstd.compress(b"".join((head, *texts)), LEVEL)
