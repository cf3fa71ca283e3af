"""The folder beside the database, in which the bot stores what labs upload through it, as it would in a bucket.

A file appears whole or not at all, and is never overwritten: it is written under another name, flushed to the disk, and
then renamed (docs/decisions/uploads-through-the-bot.md).
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO

from bot.aws import texts
from bot.aws.bucket import MANIFEST, Downloaded, NoSpace, ObjectHead, OtherContent, Writable
from bot.aws.client import in_thread
from bot.aws.folder import LocalFolder, file_sha256
from bot.config.types import STORE_FOLDER
from bot.core.errors import UserError

LEAST_FREE = 1 << 30
"""Bytes of the disk that uploads leave free: the database lies on it too."""
INCOMING = ".incoming"
"""The folder of files that are still arriving."""
RUN_FOLDERS = "*/*/*/*/*/*"
"""The folders of runs below the prefix: OWNER, NAME, LAB, TARGET, SHA, RUN."""
DAY = 86400.0
STORED_DAYS = 90
"""Days after which the files of a run of an unknown repository are removed; its results stay in the database."""
ABANDONED_DAYS = 2
"""Days after which files without a manifest are removed: an upload may be resumed for one day."""


def store_folder_of(database: str) -> Path:
    """Return the folder beside a SQLite database: `nightjar-results` for `nightjar.db`."""
    path = Path(database)
    return path.with_name(f"{path.stem}-results")


class StoreFolder(LocalFolder):
    """A folder that one server at a time writes, like the SQLite file beside it. `clock` is in seconds since 1970.

    A version is a file's size and time, so that no listing reads the content of files.
    """

    def __init__(self, root: Path, *, least_free: int = LEAST_FREE, clock: Callable[[], float] = time.time) -> None:
        """Create the folder. Raises `UserError`."""
        try:
            (root / INCOMING).mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise UserError(texts.UNWRITABLE.format(key=root, reason=error.strerror)) from None
        super().__init__(root)
        self.name = STORE_FOLDER
        self.least_free = least_free
        self._clock = clock
        self._renaming = threading.Lock()

    def _head(self, key: str) -> ObjectHead:
        with self._open(key) as file:
            status = os.fstat(file.fileno())
        return ObjectHead(status.st_size, f"{status.st_size:x}-{status.st_mtime_ns:x}")

    def _copy(self, key: str, into: Writable, limit: int) -> Downloaded:
        version = self._head(key).version
        return super()._copy(key, into, limit)._replace(version=version)

    def check_space(self, size: int) -> None:
        """Raise `NoSpace` unless enough of the disk stays free after `size` more bytes."""
        free = shutil.disk_usage(self._root).free
        if free - size < self.least_free:
            raise NoSpace(texts.DISK_FULL.format(size=size, free=free >> 20, least=self.least_free >> 20))

    @contextmanager
    def temporary_file(self) -> Iterator[BinaryIO]:
        """Return a new file for `put_once`, on the folder's own disk; it is removed unless it was stored."""
        descriptor, name = tempfile.mkstemp(dir=self._root / INCOMING)
        os.close(descriptor)
        try:
            with Path(name).open("r+b") as file:
                yield file
        finally:
            Path(name).unlink(missing_ok=True)

    async def put_once(self, key: str, file: BinaryIO, *, sha256: str) -> bool:
        """Store a `temporary_file`; return False if the key has this content already.

        Raises `OtherContent`, and `UserError` where the file cannot be written.
        """
        return await in_thread(partial(self._put_once, key, file, sha256))

    def _put_once(self, key: str, file: BinaryIO, sha256: str) -> bool:
        path = self._path(key)
        with self._renaming:
            if not path.exists():
                self._rename(file, path)
                return True
        with self._open(key) as stored:
            if file_sha256(stored) != sha256:
                raise OtherContent(texts.OTHER_CONTENT.format(key=key))
        return False

    async def write_over(self, key: str, body: bytes, *, content_type: str) -> bool:  # as in a bucket
        """Write a file unless it holds this content already; return whether it was written."""
        return await in_thread(partial(self._write_over, key, body))

    def _write_over(self, key: str, body: bytes) -> bool:
        path = self._path(key)
        with self._renaming, self.temporary_file() as file:
            if path.is_file() and path.read_bytes() == body:
                return False
            file.write(body)
            self._rename(file, path)
        return True

    def _rename(self, file: BinaryIO, path: Path) -> None:
        """Give a file its name, so that it survives a loss of power from then on."""
        try:
            file.flush()
            os.fsync(file.fileno())
            new_folders = [folder for folder in path.parents if not folder.exists()]
            path.parent.mkdir(parents=True, exist_ok=True)
            Path(file.name).rename(path)
            for folder in (path.parent, *(new.parent for new in new_folders)):
                _flush_folder(folder)
        except OSError as error:
            raise UserError(texts.UNWRITABLE.format(key=path, reason=error.strerror)) from None

    async def remove_old(self, prefix: str, kept_seconds: Mapping[str, float] = MappingProxyType({})) -> int:
        """Remove the files of old runs and of uploads that were abandoned; return how many runs.

        `kept_seconds` says by OWNER/NAME how long the files of a repository's runs stay, else STORED_DAYS.
        """
        return await in_thread(partial(self._remove_old, prefix, kept_seconds))

    def _remove_old(self, prefix: str, kept_seconds: Mapping[str, float]) -> int:
        removed, moment = 0, self._clock()
        for path in (self._root / INCOMING).iterdir():
            if _age(path, moment) > ABANDONED_DAYS * DAY:
                path.unlink(missing_ok=True)
        for folder in (self._root / prefix).glob(RUN_FOLDERS):
            repository = "/".join(folder.relative_to(self._root / prefix).parts[:2])
            age_limit = ABANDONED_DAYS * DAY
            if (folder / MANIFEST).exists():
                age_limit = kept_seconds.get(repository, STORED_DAYS * DAY)
            if folder.is_dir() and _age(folder, moment) > age_limit:
                shutil.rmtree(folder, ignore_errors=True)
                removed += 1
        return removed


def _age(path: Path, moment: float) -> float:
    """Return the seconds since a file was written, or since a file was added to a folder."""
    try:
        return moment - path.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _flush_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
