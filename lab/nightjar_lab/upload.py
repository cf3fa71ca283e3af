"""Collect results that a stranger's code wrote, and upload them with the bot's permission, the manifest last."""

from __future__ import annotations

import hashlib
import os
import secrets
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from nightjar_formats.items import counted
from nightjar_formats.limits import MAX_ARTIFACTS, MAX_FILE_BYTES, MAX_FILES, MAX_RUN_BYTES
from nightjar_formats.model import MANIFEST
from nightjar_formats.runs.artifacts import artifact_fault, is_log
from nightjar_formats.runs.file_names import upload_names
from nightjar_formats.runs.upload import PackedRun, UploadFile
from nightjar_lab import texts
from nightjar_lab.api import OPENER, check_address, reason_of
from nightjar_lab.result_files import ResultPaths, named_lines, result_paths

CHUNK = 1 << 18
TRIES = 6
FIRST_PAUSE = 1.0
TIMEOUT = 120.0


class UploadFailed(Exception):
    """The results could not be found or uploaded; the text is the reason."""


@dataclass(frozen=True)
class ResultFile:
    """A file that the test wrote, and its name in the run.

    It has the size, the digest, and the device and inode number with which it was read.
    """

    path: Path
    name: str
    size: int
    sha256: str
    identity: tuple[int, int]
    is_artifact: bool = False

    @property
    def upload_file(self) -> UploadFile:
        """Return the file's entry for the manifest."""
        return UploadFile(self.path, self.name, self.size, self.sha256, is_artifact=self.is_artifact)

    def chunks(self) -> Iterator[bytes]:
        """Yield the content. Raises `UploadFailed` if it is not the one that was read first."""
        digest = hashlib.sha256()
        for chunk in _content(self.path, self.size, self.identity):
            digest.update(chunk)
            yield chunk
        if digest.hexdigest() != self.sha256:
            raise UploadFailed(texts.RESULT_CHANGED.format(name=self.name))


def result_files(
    folder: Path,
    most: int = MAX_FILE_BYTES,
    named: Callable[[str], object] = lambda _line: None,
    artifacts_folder: Path | None = None,
) -> list[ResultFile]:
    """Return the reports in a folder, as `result_paths` finds them, then the artifacts. Raises `UploadFailed`.

    Artifacts are the logs in the folder, and the files in `artifacts_folder`. The test could use a link to make the
    agent upload a file of the lab that the test itself must not read. Each file has at most `most` bytes, and all
    together those of a run; nothing is read before that is known. `named` gets a line for each file that is left out:
    an artifact that is not accepted loses no results.
    """
    result = result_paths(folder)
    artifact_paths = result_paths(artifacts_folder) if artifacts_folder else ResultPaths()
    left_out = [*result.left_out, *artifact_paths.left_out]
    files = [(path, file_stat) for path, file_stat in result.files if not is_log(path.name)]
    if len(files) > MAX_FILES:
        raise UploadFailed(texts.TOO_MANY_FILES.format(most=MAX_FILES))
    for path, file_stat in files:
        if file_stat.st_size > most:
            raise UploadFailed(texts.TOO_LARGE.format(name=path.name, most=most))
    artifacts = []
    for path, file_stat in (*(entry for entry in result.files if is_log(entry[0].name)), *artifact_paths.files):
        if fault := _artifact_fault(path, file_stat, most):
            left_out.append(fault)
        else:
            artifacts.append((path, file_stat))
    if (more := len(artifacts) - MAX_ARTIFACTS) > 0:
        left_out.append(texts.ARTIFACTS_LEFT_OUT.format(files=counted(more, "file"), most=MAX_ARTIFACTS))
        del artifacts[MAX_ARTIFACTS:]
    for line in named_lines(left_out):
        named(line)
    if sum(file_stat.st_size for _, file_stat in (*files, *artifacts)) > MAX_RUN_BYTES:
        raise UploadFailed(texts.TOO_LARGE_TOGETHER.format(most=MAX_RUN_BYTES))
    roots = [root for root in (artifacts_folder, folder) if root]
    names = upload_names([_below(path, roots) for path, _ in (*files, *artifacts)])
    return [
        _read(path, name, file_stat, is_artifact=number >= len(files))
        for number, ((path, file_stat), name) in enumerate(zip((*files, *artifacts), names))
    ]


def _below(path: Path, roots: Sequence[Path]) -> Path:
    """Return a path relative to the one of the folders in which it is."""
    return next((path.relative_to(root) for root in roots if root in path.parents), path)


def _artifact_fault(path: Path, file_stat: os.stat_result, most: int) -> str:
    """Return why a file cannot be an artifact; "" if it can."""
    name = upload_names([path])[0]
    if file_stat.st_size > most:
        return texts.TOO_LARGE.format(name=path.name, most=most)
    try:
        with _opened(path) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return texts.LEFT_OUT.format(path=path.name, reason=texts.NOT_REGULAR)
            return artifact_fault(file, name)
    except OSError as error:
        return texts.LEFT_OUT.format(path=path.name, reason=reason_of(error))


def _opened(path: Path) -> BinaryIO:
    # Without waiting: what was a file may be a pipe by now.
    return os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")


def copy_files(files: Sequence[ResultFile], into: Path) -> None:
    """Copy result files into a folder. Raises `UploadFailed` for one that has changed, and OSError."""
    for file in files:
        with (into / file.name).open("xb") as copy:
            for chunk in file.chunks():
                copy.write(chunk)


def _read(path: Path, name: str, file_stat: os.stat_result, *, is_artifact: bool) -> ResultFile:
    digest, identity = hashlib.sha256(), (file_stat.st_dev, file_stat.st_ino)
    for chunk in _content(path, file_stat.st_size, identity):
        digest.update(chunk)
    return ResultFile(path, name, file_stat.st_size, digest.hexdigest(), identity, is_artifact)


def _content(path: Path, size: int, identity: tuple[int, int]) -> Iterator[bytes]:
    """Yield the first `size` bytes of a file. Raises `UploadFailed` for another file, or if it is shorter."""
    bytes_left = size
    try:
        with _opened(path) as file:
            current = os.fstat(file.fileno())
            while (current.st_dev, current.st_ino) == identity and (chunk := file.read(min(CHUNK, bytes_left))):
                bytes_left -= len(chunk)
                yield chunk
    except OSError as error:
        raise UploadFailed(texts.UPLOAD_FAILED.format(reason=reason_of(error))) from None
    if bytes_left:
        raise UploadFailed(texts.RESULT_CHANGED.format(name=path.name))


def send_permitted(permission: Mapping[str, Any], packed_run: PackedRun, files: Sequence[ResultFile]) -> None:
    """Upload the files of a run and then its manifest, by the bot's permission. Raises `UploadFailed`."""
    try:
        url, fields = check_address(str(permission["url"])), dict(permission["fields"])
    except (KeyError, TypeError, ValueError) as error:
        raise UploadFailed(texts.UPLOAD_FAILED.format(reason=type(error).__name__)) from None

    def send(name: str, size: int, chunks: Callable[[], Iterator[bytes]]) -> None:
        _send(url, {**fields, "key": f"{packed_run.folder}{name}"}, name, size, chunks)

    for file in files:
        send(file.name, file.size, file.chunks)
    send(MANIFEST, len(packed_run.manifest), lambda: iter([packed_run.manifest]))


def _send(url: str, fields: Mapping[str, str], name: str, size: int, chunks: Callable[[], Iterator[bytes]]) -> None:
    head, tail, content_type = _form(fields, name)
    headers = {"Content-Type": content_type, "Content-Length": str(len(head) + size + len(tail))}
    pause = FIRST_PAUSE
    for attempt in range(TRIES):
        request = urllib.request.Request(  # noqa: S310  # `check_address` has looked at the scheme
            url, data=chain([head], chunks(), [tail]), headers=headers, method="POST"
        )
        try:
            with OPENER.open(request, timeout=TIMEOUT):
                return
        except urllib.error.HTTPError as error:
            with error:
                reason = f"{error.code} for {name}"
            if error.code < 500 and error.code != 429:
                break
        except (OSError, HTTPException) as error:
            reason = str(error) or type(error).__name__
        if attempt + 1 < TRIES:
            time.sleep(pause)
            pause *= 2
    raise UploadFailed(texts.UPLOAD_FAILED.format(reason=reason))


def _form(fields: Mapping[str, str], name: str) -> tuple[bytes, bytes, str]:
    """Return the bytes of a form before and after the content of its file, and its content type (RFC 7578)."""
    boundary = secrets.token_hex(16)
    head = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{field}"\r\n\r\n{value}\r\n'
        for field, value in fields.items()
    )
    head += (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return head.encode(), f"\r\n--{boundary}--\r\n".encode(), f"multipart/form-data; boundary={boundary}"
