"""A local folder with the layout of a bucket, as a source of runs: for `nightjar results ingest PATH`."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import AsyncIterator, Iterator
from io import BufferedReader, BytesIO
from itertools import islice
from pathlib import Path, PurePosixPath

import structlog
from nightjar_formats.refused import TooMuch

from bot.aws import texts
from bot.aws.bucket import (
    CHUNK,
    Arrival,
    Downloaded,
    NotThere,
    ObjectHead,
    Small,
    Writable,
    is_manifest,
)
from bot.aws.client import in_thread
from bot.core.errors import UserError

PAGE = 1000

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class LocalFolder:
    """A folder, as a source of runs; keys are paths in it, with `/` whatever the system.

    A version is the MD5 of the content: the ETag that S3 gives to most objects of that content.
    """

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise UserError(texts.NO_FOLDER.format(path=root))
        self._root = root.resolve()
        self.name = self._root.as_uri()

    async def manifests(self, prefix: str) -> AsyncIterator[list[Arrival]]:
        """Yield the manifests whose keys begin with a prefix, in lists of up to 1000.

        Links to folders are not followed. Raises `UserError` for a folder that may not be read.
        """
        manifests = self._arrivals(prefix)
        while page := await in_thread(lambda: list(islice(manifests, PAGE))):
            yield page

    def _arrivals(self, prefix: str) -> Iterator[Arrival]:
        for key in self._keys(prefix):
            try:
                arrival = Arrival(self.name, key, self._head(key).version)
            except (NotThere, UserError) as error:  # one bad link does not hide the other runs
                log.warning("manifest is left out", key=key, reason=str(error))
            else:
                yield arrival

    def _keys(self, prefix: str) -> Iterator[str]:
        # Not from the root: it may hold the runs of many repositories.
        top = self._path(prefix.rpartition("/")[0])
        # Without `onerror` it leaves out what it may not read: https://docs.python.org/3/library/os.html#os.walk
        for folder, folders, files in os.walk(top, onerror=_unreadable_folder) if top.is_dir() else ():
            folders.sort()  # in place, because os.walk continues with this list
            for name in sorted(files):
                key = (Path(folder) / name).relative_to(self._root).as_posix()
                if key.startswith(prefix) and is_manifest(key):
                    yield key

    async def folders(self, prefix: str) -> list[str]:
        """Return the folders directly below a prefix, each as its prefix with a slash at the end."""
        above = self._root / PurePosixPath(prefix)
        names = await in_thread(
            lambda: [path.name for path in above.iterdir() if path.is_dir()] if above.is_dir() else []
        )
        return sorted(f"{prefix}{name}/" for name in names)

    async def head(self, key: str) -> ObjectHead:
        """Return a file's size and version. Raises `NotThere`, and `UserError` for what may not be read."""
        return await in_thread(lambda: self._head(key))

    def _head(self, key: str) -> ObjectHead:
        with self._open(key) as file:
            return ObjectHead(_size(file), hashlib.file_digest(file, _md5).hexdigest())

    async def read_small(self, key: str, limit: int) -> Small:
        """Return the content of a file of at most `limit` bytes. Raises `NotThere`, `TooMuch` and `UserError`."""
        into = BytesIO()
        read = await self.download(key, into, limit=limit)
        return Small(into.getvalue(), read.version)

    async def download(self, key: str, into: Writable, *, limit: int) -> Downloaded:
        """Copy a file of at most `limit` bytes into another. Raises `NotThere`, `TooMuch` and `UserError`."""
        return await in_thread(lambda: self._copy(key, into, limit))

    def _copy(self, key: str, into: Writable, limit: int) -> Downloaded:
        with self._open(key) as file:
            if (size := _size(file)) > limit:
                raise TooMuch(texts.TOO_LARGE.format(key=key, size=size, limit=limit))
            count, digest, version = 0, hashlib.sha256(), _md5()
            while piece := file.read(CHUNK):
                count += len(piece)
                if count > limit:
                    raise TooMuch(texts.TOO_LONG.format(key=key, limit=limit))
                digest.update(piece)
                version.update(piece)
                into.write(piece)
        return Downloaded(count, digest.hexdigest(), version.hexdigest())

    def _path(self, key: str) -> Path:
        """Return the path of a key. Raises `UserError` for one that leads elsewhere by `..`, by its root or a link."""
        path = self._root / PurePosixPath(key)
        try:
            is_inside = path.resolve().is_relative_to(self._root)
        except (OSError, ValueError, RuntimeError) as error:  # RuntimeError: a loop of links
            raise UserError(texts.UNREADABLE.format(key=key, reason=_reason(error))) from None
        if not is_inside:
            raise UserError(texts.OUTSIDE.format(key=key, root=self._root))
        return path

    def _open(self, key: str) -> BufferedReader:
        """Open a regular file inside the folder."""
        path = self._path(key)
        try:
            # Open only regular files: opening a named pipe would wait for its writer.
            if not stat.S_ISREG(path.stat().st_mode):
                raise UserError(texts.NO_FILE.format(key=key))
            return path.open("rb")
        except (FileNotFoundError, NotADirectoryError):
            raise NotThere(texts.NOT_THERE.format(key=key)) from None
        except (OSError, ValueError) as error:
            raise UserError(texts.UNREADABLE.format(key=key, reason=_reason(error))) from None


def file_sha256(file: BufferedReader) -> str:
    """Return the digest of a file's content, in hexadecimal digits."""
    return hashlib.file_digest(file, hashlib.sha256).hexdigest()


def _size(file: BufferedReader) -> int:
    return os.fstat(file.fileno()).st_size


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or "no such path").lower()


def _unreadable_folder(error: OSError) -> None:
    raise UserError(texts.UNREADABLE.format(key=error.filename, reason=_reason(error))) from None


def _md5() -> hashlib._Hash:
    # The digest only names a version; without the flag, restricted builds of Python refuse MD5:
    # https://docs.python.org/3/library/hashlib.html#hashlib.new
    return hashlib.md5(usedforsecurity=False)
