"""zstd as Python 3.14 has it, or the same module from a package: https://docs.python.org/3/library/compression.zstd.html."""

from __future__ import annotations

import sys

if sys.version_info >= (3, 14):
    from compression.zstd import (
        CompressionParameter,
        DecompressionParameter,
        ZstdCompressor,
        ZstdDecompressor,
        ZstdError,
        ZstdFile,
        compress,
        decompress,
        get_frame_info,
    )
else:
    from backports.zstd import (
        CompressionParameter,
        DecompressionParameter,
        ZstdCompressor,
        ZstdDecompressor,
        ZstdError,
        ZstdFile,
        compress,
        decompress,
        get_frame_info,
    )

__all__ = [
    "FRAME_MAGIC",
    "CompressionParameter",
    "DecompressionParameter",
    "ZstdCompressor",
    "ZstdDecompressor",
    "ZstdError",
    "ZstdFile",
    "compress",
    "decompress",
    "get_frame_info",
]

FRAME_MAGIC = b"\x28\xb5\x2f\xfd"
"""The first bytes of each frame: https://www.rfc-editor.org/rfc/rfc8878#section-3.1.1."""
