"""A run's log and other files, which people read beside its results: their names, their types, and what is refused.

A file's name decides its type, here and on the server. A lab also looks at the content, before it uploads.
"""

from __future__ import annotations

import codecs
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from nightjar_formats.limits import MAX_ARTIFACT_BYTES, MAX_ARTIFACTS
from nightjar_formats.model import FILE_NAME
from nightjar_formats.patterns import Pattern
from nightjar_formats.readers.decoding.inflate import GZIP, ZSTD, inflated
from nightjar_formats.readers.decoding.wide_text import encoding_of
from nightjar_formats.refused import Refused
from nightjar_formats.runs import texts

LOG = "log.txt"
"""The file that is a run's log, wherever a lab puts it; it is never read as a report."""
TEXT, JSON = "text/plain", "application/json"
READABLE = (TEXT, JSON)
"""The types that a page shows as text; such files may be compressed."""
TYPES: Mapping[str, str] = {
    ".txt": TEXT,
    ".log": TEXT,
    ".json": JSON,
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
}
"""The type of an artifact by the end of its name. SVG and HTML are missing, because they can hold scripts."""
PACKED: Mapping[str, bytes] = {".gz": GZIP, ".zst": ZSTD}
"""The ends of names of compressed files, and their first bytes."""
HEAD_BYTES = 1 << 13
"""Bytes at the start of a file from which `artifact_fault` sees what it is."""
_JSON_STARTS = b'{["-0123456789tfn'
_IMAGE_STARTS: Mapping[str, tuple[bytes, ...]] = {
    "image/png": (b"\x89PNG\r\n\x1a\n",),
    "image/jpeg": (b"\xff\xd8\xff",),
    "image/gif": (b"GIF87a", b"GIF89a"),
    "image/webp": (b"RIFF",),
}
_NAME = Pattern(FILE_NAME)


def plain_name(name: str) -> str:
    """Return a name without the suffix of its compression: `log.txt` for `log.txt.gz`."""
    stem, dot, suffix = name.rpartition(".")
    return stem if dot + suffix in PACKED else name


def is_packed(name: str) -> bool:
    """Return whether a file is compressed, by its name."""
    return plain_name(name) != name


def is_log(name: str) -> bool:
    """Return whether a file of this name is the log of its run."""
    return plain_name(name) == LOG


def media_type(name: str) -> str | None:
    """Return the type of an artifact, of its content if it is compressed; None for a type that is not accepted."""
    if _NAME.fullmatch(name) is None:
        return None
    plain = plain_name(name)
    kind = TYPES.get(Path(plain).suffix.lower())
    return None if plain != name and kind not in READABLE else kind


def artifact_fault(file: BinaryIO, name: str, *, packs: bool = False) -> str:
    """Return why an open file cannot be an artifact under a name, by its type, size and first bytes; "" if it can.

    With `packs`, it will be compressed, so its size does not matter yet. Raises OSError.
    """
    kind = media_type(name)
    if kind is None:
        return texts.ARTIFACT_TYPE.format(name=name)
    if file.seek(0, os.SEEK_END) > MAX_ARTIFACT_BYTES and not packs:
        return texts.ARTIFACT_TOO_LARGE.format(name=name)
    file.seek(0)
    start = file.read(HEAD_BYTES)
    if start.startswith(tuple(PACKED.values())) != is_packed(name):
        return texts.ARTIFACT_CONTENT.format(name=name, type=kind)
    file.seek(0)
    try:
        head = inflated(file, name).peek(HEAD_BYTES)[:HEAD_BYTES] if is_packed(name) else start
    except Refused as refused:
        return str(refused)
    return "" if _is_of_type(head, kind) else texts.ARTIFACT_CONTENT.format(name=name, type=kind)


def artifact_faults(paths: Sequence[Path]) -> list[str]:
    """Return what is wrong with a run's artifacts together: their number, and files given twice."""
    faults = [texts.GIVEN_TWICE.format(path=path) for path in sorted({path for path in paths if paths.count(path) > 1})]
    return [*faults, *([texts.TOO_MANY_ARTIFACTS] if len(paths) > MAX_ARTIFACTS else [])]


def _is_of_type(head: bytes, kind: str) -> bool:
    if kind in _IMAGE_STARTS:
        return head.startswith(_IMAGE_STARTS[kind]) and (kind != "image/webp" or head[8:12] == b"WEBP")
    if kind == JSON:
        start = head.removeprefix(codecs.BOM_UTF8).lstrip()[:1]
        return bool(start) and start in _JSON_STARTS
    # PowerShell's > writes UTF-16, which has zero bytes.
    return b"\0" not in head or bool(encoding_of(head)[1])
