"""Read the files of a zip archive that anybody may have made, within limits and without writing any of them."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import BinaryIO, TypeVar

from nightjar_formats.limits import MAX_INFLATED_BYTES, MAX_RATIO, RATIO_FREE_BYTES
from nightjar_formats.refused import Refused, TooMuch

from handlers.ci_reports import texts

MOST_FILES = 2_000
"""The most files of an archive, folders not counted; an archive with more is refused."""
MOST_DIRECTORY_BYTES = 2 << 20
"""The most bytes of the list of files at the archive's end: zipfile holds all of it in memory, many times larger."""

END, END_BYTES, COMMENT_BYTES = b"PK\x05\x06", 22, 0xFFFF
"""The beginning of the record at the end of an archive, its length, and the most bytes of a comment behind it
(https://pkware.cachefly.net/webdocs/casestudies/APPNOTE.TXT, 4.3.16)."""
LOCATOR_64, LOCATOR_64_BYTES = b"PK\x06\x07", 20

METHODS = frozenset({zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED})
"""The accepted methods of compression: with any other, zipfile inflates everything it has read at once, unlimited."""


Result = TypeVar("Result")


def read_zip(
    file: BinaryIO,
    is_wanted: Callable[[str], bool],
    read: Callable[[str, BinaryIO], Result],
    *,
    limit: int = MAX_INFLATED_BYTES,
) -> Iterator[Result]:
    """Call `read` with the name and the contents of each file that `is_wanted` accepts, and yield what it returns.

    `limit` is in bytes, of all these files together once they are inflated. Names are only compared and shown: nothing
    is ever written under them. Raises `Refused` if the file is not an archive or is broken, `TooMuch` beyond a limit.
    The sizes that an archive states are not trusted.
    """
    _check_directory(file)
    try:
        with zipfile.ZipFile(file) as archive:
            entries = [entry for entry in archive.infolist() if not entry.is_dir()]
            if len(entries) > MOST_FILES:
                raise TooMuch(texts.TOO_MANY_FILES.format(most=MOST_FILES))
            budget = _Budget(limit, limit)
            for entry in sorted(
                (entry for entry in entries if is_wanted(entry.filename)), key=lambda entry: entry.filename
            ):
                # APPNOTE 4.4.4: bit 0 says that the file is encrypted. zipfile would ask for a password with a
                # RuntimeError.
                if entry.flag_bits & 0x1:
                    raise Refused(texts.ENCRYPTED.format(name=entry.filename))
                if entry.compress_type not in METHODS:
                    raise Refused(texts.OTHER_METHOD.format(name=entry.filename))
                # zipfile shifts every offset by the length of the data in front of the archive, so with forged sizes a
                # file may begin before byte 0.
                if entry.header_offset < 0:
                    raise Refused(texts.NO_ZIP)
                with archive.open(entry) as inner:
                    yield read(entry.filename, _Stream(inner, entry, budget))  # type: ignore[arg-type]  # it is read
    # NotImplementedError: a version or a kind of encryption that zipfile does not know. UnicodeDecodeError: a name that
    # claims to be UTF-8 and is not.
    except (zipfile.BadZipFile, NotImplementedError, UnicodeDecodeError, ValueError) as error:
        raise Refused(texts.NO_ZIP) from error


def _check_directory(file: BinaryIO) -> None:
    """Raise `TooMuch` if the list of files is long, according to any record that zipfile could take for the last one.

    Raises `Refused` if there is no such record.
    """
    size = file.seek(0, 2)
    file.seek(max(0, size - END_BYTES - COMMENT_BYTES - LOCATOR_64_BYTES))
    tail = file.read()
    file.seek(0)
    position = tail.find(END)
    if position < 0:
        raise Refused(texts.NO_ZIP)
    while position >= 0:
        # ZIP64, for archives beyond 4 GiB or 65,535 files, states the size of the list elsewhere.
        has_zip64 = tail[max(0, position - LOCATOR_64_BYTES) :].startswith(LOCATOR_64)
        if has_zip64 or int.from_bytes(tail[position + 12 : position + 16], "little") > MOST_DIRECTORY_BYTES:
            raise TooMuch(texts.DIRECTORY_TOO_LARGE.format(mib=MOST_DIRECTORY_BYTES >> 20))
        position = tail.find(END, position + 1)


@dataclass(slots=True)
class _Budget:
    """The bytes that all files of an archive may have in total, and how many of them remain."""

    limit: int
    remaining: int


class _Stream:
    """The contents of one file, counted while they are read."""

    def __init__(self, inner: zipfile.ZipExtFile, entry: zipfile.ZipInfo, budget: _Budget) -> None:
        self._inner = inner
        self._entry = entry
        self._budget = budget
        self._given = 0

    def read(self, size: int = -1) -> bytes:
        """Read bytes; raise `Refused` if the archive is broken, `TooMuch` beyond a limit."""
        try:
            # One byte more than is left, so that the end of the file and the end of the budget differ.
            piece = self._inner.read(min(size, self._budget.remaining + 1) if size >= 0 else self._budget.remaining + 1)
        except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as error:
            raise Refused(texts.BROKEN.format(name=self._entry.filename)) from error
        self._given += len(piece)
        self._budget.remaining -= len(piece)
        if self._budget.remaining < 0:
            raise TooMuch(texts.ZIP_TOO_LONG.format(limit=self._budget.limit))
        if self._given > RATIO_FREE_BYTES and self._given > MAX_RATIO * self._entry.compress_size:
            raise TooMuch(texts.BOMB.format(name=self._entry.filename, ratio=MAX_RATIO))
        return piece
