"""Collect results that a stranger's code wrote, and upload them with the bot's permission, the manifest last."""

from __future__ import annotations

import hashlib
import os
import re  # noqa: TID251
import secrets
import stat
import time
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path
from typing import Any

from nightjar_formats.model import FILE_NAME, MANIFEST
from nightjar_formats.runs.upload import Parcel, Piece
from nightjar_lab import texts
from nightjar_lab.api import OPENER, check_address

MOST_FILES = 200
MOST_BYTES = 64 << 20
_FILE_NAME = re.compile(FILE_NAME)  # noqa: TID251
TRIES = 6
FIRST_PAUSE = 1.0
TIMEOUT = 120.0


class UploadFailed(Exception):
    """The results could not be found or uploaded; the text is the reason."""


@dataclass(frozen=True)
class ResultFile:
    """A file to upload."""

    name: str
    content: bytes

    @property
    def piece(self) -> Piece:
        """Return the file's entry for the manifest."""
        return Piece(Path(self.name), self.name, len(self.content), hashlib.sha256(self.content).hexdigest())


def is_result_name(name: str) -> bool:
    """Say whether a file of this name can be one of a run's results."""
    return _FILE_NAME.fullmatch(name) is not None and name != MANIFEST


def result_files(folder: Path, most: int = MOST_BYTES) -> list[ResultFile]:
    """Read the result files of a folder: regular ones with one name each, no links. Raises `UploadFailed`.

    The test could use a link to make the agent upload a file of the lab that the test itself must not read.
    """
    found: list[ResultFile] = []
    opened = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        for name in sorted(os.listdir(opened)):  # noqa: PTH208  # of the folder that was opened, whatever is there now
            if is_result_name(name):
                found += _read(opened, name, most)
                if len(found) > MOST_FILES:
                    raise UploadFailed(texts.TOO_MANY_FILES.format(most=MOST_FILES))
    finally:
        os.close(opened)
    return found


def _read(folder: int, name: str, most: int) -> list[ResultFile]:
    try:
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=folder)
    except OSError:  # a link, or nothing that can be read
        return []
    known = os.fstat(descriptor)
    if not stat.S_ISREG(known.st_mode) or known.st_nlink != 1 or not known.st_size:
        os.close(descriptor)
        return []
    with os.fdopen(descriptor, "rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise UploadFailed(texts.TOO_LARGE.format(name=name, most=most))
    return [ResultFile(name, content)]


def send_permitted(permission: Mapping[str, Any], parcel: Parcel, files: Sequence[ResultFile]) -> None:
    """Upload the files of a run and then its manifest, by the bot's permission. Raises `UploadFailed`."""
    try:
        url, fields = check_address(str(permission["url"])), dict(permission["fields"])
    except (KeyError, TypeError, ValueError) as error:
        raise UploadFailed(texts.UPLOAD_FAILED.format(reason=type(error).__name__)) from None
    for file in [*files, ResultFile(MANIFEST, parcel.manifest)]:
        _send(url, {**fields, "key": f"{parcel.folder}{file.name}"}, file)


def _send(url: str, fields: Mapping[str, str], file: ResultFile) -> None:
    body, content_type = _form(fields, file)
    pause = FIRST_PAUSE
    for attempt in range(TRIES):
        request = urllib.request.Request(  # noqa: S310  # `check_address` has looked at the scheme
            url, data=body, headers={"Content-Type": content_type}, method="POST"
        )
        try:
            with OPENER.open(request, timeout=TIMEOUT):
                return
        except urllib.error.HTTPError as error:
            with error:
                reason = f"{error.code} for {file.name}"
            if error.code < 500 and error.code != 429:
                break
        except (OSError, HTTPException) as error:
            reason = str(error) or type(error).__name__
        if attempt + 1 < TRIES:
            time.sleep(pause)
            pause *= 2
    raise UploadFailed(texts.UPLOAD_FAILED.format(reason=reason))


def _form(fields: Mapping[str, str], file: ResultFile) -> tuple[bytes, str]:
    """Return a form with the file as its last field, and its content type (RFC 7578)."""
    boundary = secrets.token_hex(16)
    head = "".join(
        f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
        for name, value in fields.items()
    )
    head += (
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{file.name}"\r\n'
        "Content-Type: application/octet-stream\r\n\r\n"
    )
    return (
        head.encode() + file.content + f"\r\n--{boundary}--\r\n".encode(),
        f"multipart/form-data; boundary={boundary}",
    )
