"""Upload a run to the bucket: its files, then its manifest. Nothing is overwritten."""

from __future__ import annotations

import gzip
import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from nightjar_formats import zstd
from nightjar_formats.errors import AlreadyThere, TryAgain, UserError
from nightjar_formats.limits import MAX_ARTIFACT_BYTES, MAX_FILE_BYTES
from nightjar_formats.model import MANIFEST, Claims, RunKey
from nightjar_formats.readers.decoding.inflate import GZIP, ZSTD
from nightjar_formats.refused import Refused
from nightjar_formats.runs import texts
from nightjar_formats.runs.artifacts import LOG, READABLE, artifact_fault, artifact_faults, is_log, media_type
from nightjar_formats.runs.file_names import path_faults, upload_names
from nightjar_formats.runs.manifest import SCHEMA, read_manifest, run_key
from nightjar_formats.runs.offline_check import sha256_of

ZSTD_OPTIONS: Mapping[int, int] = {
    zstd.CompressionParameter.compression_level: 10,
    zstd.CompressionParameter.checksum_flag: 1,
}
SUFFIXES = {"gz": ".gz", "zst": ".zst"}
CHUNK = 1 << 20


@dataclass(frozen=True)
class UploadFile:
    """A file of a run: its path on this machine, and the values of its entry in the manifest."""

    path: Path
    name: str
    bytes: int
    sha256: str
    format: str | None = None
    is_artifact: bool = False

    @property
    def entry(self) -> dict[str, Any]:
        """Return the file's entry in the manifest."""
        fields = {
            "name": self.name,
            "format": self.format,
            "type": media_type(self.name) if self.is_artifact else None,
            "bytes": self.bytes,
            "sha256": self.sha256,
        }
        return {key: value for key, value in fields.items() if value is not None}


@dataclass(frozen=True)
class PackedRun:
    """A run that is ready to upload: its key, the bucket's prefix, its files and its manifest."""

    key: RunKey
    prefix: str
    pieces: tuple[UploadFile, ...]
    manifest: bytes

    @property
    def folder(self) -> str:
        """Return the key of the run's folder, with a slash at its end."""
        return f"{self.prefix}{self.key.folder}"


class WriteOnce(Protocol):
    """A bucket in which no object is overwritten."""

    def put_once(self, key: str, source: BinaryIO, *, sha256: str) -> bool:
        """Write an object; return True if it was written now, False if it exists with the same content. Blocks.

        `sha256` is the digest of the content, in hexadecimal digits. Raises `AlreadyThere` if the object exists and the
        credentials may not read it, another `UserError` if it has other content or another try would fail as well, and
        `TryAgain` if the bucket does not answer.
        """


def reports_and_artifacts(paths: Sequence[Path], files: Sequence[Path] = ()) -> tuple[list[Path], list[Path]]:
    """Return the reports among `paths`, and the run's artifacts: the logs among `paths`, and `files`.

    Raises `UserError` unless they can be the files of one run.
    """
    reports = [path for path in paths if not is_log(path.name)]
    artifacts = [*(path for path in paths if is_log(path.name)), *files]
    for fault in (*path_faults(reports), *artifact_faults(artifacts)):
        if fault:
            raise UserError(fault)
    if not reports:
        raise UserError(texts.NO_REPORT.format(name=artifacts[0].name if artifacts else LOG))
    return reports, artifacts


def pieces(
    paths: Sequence[Path], format: str | None, compress: str | None, into: Path, artifacts: Sequence[Path] = ()
) -> Iterator[UploadFile]:
    """Yield the files to upload, under the names of `upload_names`: the reports at `paths`, and the artifacts.

    With `compress`, write a compressed copy of each uncompressed file into `into`. A file is compressed the same way
    every time, so that a second upload recognizes it. Raises `UserError`.
    """
    for number, (path, name) in enumerate(zip([*paths, *artifacts], upload_names([*paths, *artifacts]))):
        is_artifact = number >= len(paths)
        try:
            packs = compress is not None and not _is_compressed(path)
            if is_artifact:
                with path.open("rb") as file:
                    fault = artifact_fault(file, name, packs=packs)
                if fault:
                    raise UserError(fault)
                packs = packs and media_type(name) in READABLE
            source = _compressed(path, name, compress, into) if packs and compress else path
            size = source.stat().st_size
            if size > (MAX_ARTIFACT_BYTES if is_artifact else MAX_FILE_BYTES):
                packed = source is not path or _is_compressed(path)
                text = texts.STILL_TOO_LARGE if packed else texts.UPLOAD_TOO_LARGE
                raise UserError((texts.ARTIFACT_TOO_LARGE if is_artifact else text).format(name=path.name))
            piece_name = name if source is path else source.name
            yield UploadFile(source, piece_name, size, sha256_of(source), None if is_artifact else format, is_artifact)
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise UserError(texts.PATH_UNREADABLE.format(path=path, reason=reason)) from None


def pack(key: RunKey, prefix: str, files: Sequence[UploadFile], claims: Claims) -> PackedRun:
    """Return a run that is ready to upload.

    The manifest depends only on the arguments, so the same run has the same manifest. Raises `UserError` if the bot
    would refuse the run.
    """
    raw = json.dumps(_document(key, files, claims), indent=2, ensure_ascii=False).encode() + b"\n"
    packed_run = PackedRun(key, prefix, tuple(files), raw)
    if run_key(packed_run.folder + MANIFEST, prefix) != (key, MANIFEST):
        raise UserError(texts.NOT_A_KEY.format(key=packed_run.folder))
    try:
        read_manifest(raw, key)
    except Refused as refused:
        raise UserError(str(refused)) from None
    return packed_run


def send(packed_run: PackedRun, bucket: WriteOnce, progress: Callable[[UploadFile | None, bool], None]) -> None:
    """Write the files, then the manifest; existing objects stay. Blocks.

    `progress` is called for each file (None for the manifest), and with True if the file was written now. Credentials
    of labs should only permit writing. With these, a file that exists is assumed to have the same content; if it has
    not, the bot notices when it compares it with the manifest. Raises `UserError`.
    """
    try:
        for piece in packed_run.pieces:
            with piece.path.open("rb") as file:
                progress(piece, _put(bucket, packed_run.folder + piece.name, file, piece.sha256))
        key = packed_run.folder + MANIFEST
        try:
            progress(None, bucket.put_once(key, BytesIO(packed_run.manifest), sha256=_sha256(packed_run.manifest)))
        except AlreadyThere:
            raise UserError(texts.MANIFEST_THERE.format(key=key)) from None
    except (TryAgain, OSError) as error:
        reason = str(error) if isinstance(error, TryAgain) else error.strerror
        raise UserError(texts.UPLOAD_AGAIN.format(reason=reason, run_id=packed_run.key.run_id)) from None


def _put(bucket: WriteOnce, key: str, file: Any, sha256: str) -> bool:
    try:
        return bucket.put_once(key, file, sha256=sha256)
    except AlreadyThere:
        return False


def _document(key: RunKey, files: Sequence[UploadFile], claims: Claims) -> Mapping[str, Any]:
    claim_fields = asdict(claims)
    shard = {"index": claim_fields.pop("shard_index"), "total": claim_fields.pop("shard_total")}
    stated = {name: value for name, value in claim_fields.items() if value not in (None, "", {})}
    shard_field = {"shard": shard} if shard["total"] > 1 else {}
    artifacts = [piece.entry for piece in files if piece.is_artifact]
    return {
        "schema": SCHEMA,
        "sha": key.sha,
        **stated,
        **shard_field,
        "files": [piece.entry for piece in files if not piece.is_artifact],
        **({"artifacts": artifacts} if artifacts else {}),
    }


def _is_compressed(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(4).startswith((GZIP, ZSTD))


def _compressed(path: Path, name: str, compress: str, into: Path) -> Path:
    copy = into / (name + SUFFIXES[compress])
    with path.open("rb") as source, copy.open("wb") as file:
        if compress == "gz":
            # Without a time and a file name, so that the same file always has the same compressed bytes.
            with gzip.GzipFile(fileobj=file, mode="wb", filename="", mtime=0) as packed:
                shutil.copyfileobj(source, packed, CHUNK)
        else:
            with zstd.ZstdFile(file, "wb", options=ZSTD_OPTIONS) as packed:
                shutil.copyfileobj(source, packed, CHUNK)
    return copy


def _sha256(raw: bytes) -> str:
    return hashlib.sha256(raw).hexdigest()
