"""Read the bytes of a result file, inflated if it is compressed."""

from __future__ import annotations

import io
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain
from typing import BinaryIO, Protocol, cast

from nightjar_formats import zstd
from nightjar_formats.limits import MAX_INFLATED_BYTES, MAX_MEMBERS, MAX_RATIO, RATIO_FREE_BYTES
from nightjar_formats.readers import texts
from nightjar_formats.readers.decoding.utf_8 import readable
from nightjar_formats.refused import Refused, TooMuch

GZIP = b"\x1f\x8b"
ZSTD = zstd.FRAME_MAGIC
_ZSTD_SKIPPABLE = tuple(bytes((first,)) + b"\x2a\x4d\x18" for first in range(0x50, 0x60))

CHUNK = 1 << 16
HEAD_BYTES = 512
"""Bytes at the start of a file that show its type; tar has its mark at 257."""
GZIP_STEP, ZSTD_STEP = 1 << 14, 1 << 9
"""Compressed bytes per call of a decompressor, which returns at most 16 MiB for them: deflate expands a byte to 1,032
bytes, and zstd four bytes to 128 KiB."""
MAX_WINDOW_LOG = 23
"""The logarithm of the most bytes of a zstd decompressor's window: `zstd -19` needs 8 MiB, and RFC 8878 asks decoders
to allow it."""
_ZSTD_OPTIONS: Mapping[int, int] = {zstd.DecompressionParameter.window_log_max: MAX_WINDOW_LOG}

_ARCHIVES = (
    (0, (b"PK\x03\x04", b"PK\x05\x06", b"PK\x07\x08"), texts.ZIP),
    (257, (b"ustar",), texts.TAR),
    (0, tuple(b"BZh%d" % level for level in range(1, 10)), texts.BZIP2),
    (0, (b"\xfd7zXZ\x00",), texts.XZ),
    (0, (b"7z\xbc\xaf\x27\x1c",), texts.SEVEN_ZIP),
)


def inflated(stream: BinaryIO, name: str) -> io.BufferedReader:
    """Return the content of `stream`; if it is gzip or zstd, of any number of members or frames, inflate it on the way.

    The first bytes show the type of the file. `name` is only for error texts: tools that upload may inflate a `.gz` on
    the way and not rename it. Raises Refused here or while reading: for an empty file, for an archive or a compression
    that is not accepted, for a compressed file inside another, and for a file that is cut off or continues after its
    end. Raises TooMuch beyond MAX_INFLATED_BYTES or MAX_RATIO.
    """
    head = _head(stream)
    if not head:
        raise Refused(texts.FILE_EMPTY.format(name=name))
    _refuse_archive(head, name)
    chunks = chain([head], iter(lambda: stream.read(CHUNK), b""))
    decompression = _decompressor(head)
    if decompression is None:
        return readable(_counted(chunks, name))
    opened = readable(_inflated(chunks, *decompression, name))
    inner = opened.peek(HEAD_BYTES)
    if _decompressor(inner) is not None:
        raise Refused(texts.COMPRESSED_TWICE.format(name=name))
    if not inner:
        raise Refused(texts.INFLATED_EMPTY.format(name=name))
    _refuse_archive(inner, name)
    return opened


class _Decompressor(Protocol):
    """One member of gzip, or one frame of zstd."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


def _zstd() -> _Decompressor:
    return cast(_Decompressor, zstd.ZstdDecompressor(options=_ZSTD_OPTIONS))


def _gzip() -> _Decompressor:
    return cast(_Decompressor, zlib.decompressobj(wbits=16 + zlib.MAX_WBITS))


def _decompressor(head: bytes) -> tuple[Callable[[], _Decompressor], int] | None:
    """Return the decompressor for a file that begins with `head`, and its step in bytes; None if not compressed."""
    if head.startswith(GZIP):
        return _gzip, GZIP_STEP
    if head.startswith((ZSTD, *_ZSTD_SKIPPABLE)):
        return _zstd, ZSTD_STEP
    return None


def _inflated(chunks: Iterable[bytes], make: Callable[[], _Decompressor], step: int, name: str) -> Iterator[bytes]:
    member, pending = make(), b""
    bytes_in = bytes_out = 0
    members = 1
    for piece in (chunk[offset : offset + step] for chunk in chunks for offset in range(0, len(chunk), step)):
        bytes_in += len(piece)
        pending += piece
        while pending:
            if member.eof:
                # Too few bytes to distinguish another member from garbage: wait for the next chunk.
                if len(pending) < len(ZSTD):
                    break
                if _decompressor(pending) != (make, step):
                    raise Refused(texts.GARBAGE.format(name=name, taken=bytes_in))
                member, members = make(), members + 1
                if members > MAX_MEMBERS:
                    raise TooMuch(texts.TOO_MANY_MEMBERS.format(name=name))
            try:
                inflated_piece = member.decompress(pending)
            except (zlib.error, zstd.ZstdError) as error:
                raise Refused(texts.NOT_INFLATED.format(name=name, taken=bytes_in, error=error)) from None
            bytes_out += len(inflated_piece)
            if bytes_out > RATIO_FREE_BYTES and bytes_out > MAX_RATIO * bytes_in:
                raise TooMuch(texts.BOMB.format(name=name))
            if bytes_out > MAX_INFLATED_BYTES:
                raise TooMuch(texts.TOO_LONG.format(name=name))
            yield inflated_piece
            pending = member.unused_data
    if pending:
        raise Refused(texts.GARBAGE.format(name=name, taken=bytes_in))
    if not member.eof:
        raise Refused(texts.FILE_CUT_OFF.format(name=name, taken=bytes_in))


def _counted(chunks: Iterable[bytes], name: str) -> Iterator[bytes]:
    bytes_out = 0
    for chunk in chunks:
        bytes_out += len(chunk)
        if bytes_out > MAX_INFLATED_BYTES:
            raise TooMuch(texts.TOO_LONG.format(name=name))
        yield chunk


def _head(stream: BinaryIO) -> bytes:
    """Read the first bytes of a stream that may return fewer bytes at once than requested."""
    head = b""
    while len(head) < HEAD_BYTES and (chunk := stream.read(HEAD_BYTES - len(head))):
        head += chunk
    return head


def _refuse_archive(head: bytes, name: str) -> None:
    for offset, magic, kind in _ARCHIVES:
        if head.startswith(magic, offset):
            raise Refused(texts.ARCHIVE.format(name=name, kind=kind))
