"""Notice that somebody removed or replaced the SQLite file while it was open.

An open file lives on without its name: SQLite would go on storing what the next start cannot find
(https://sqlite.org/howtocorrupt.html#_unlinking_or_renaming_a_database_file_while_in_use).
"""

from __future__ import annotations

from pathlib import Path

REPLACED = (
    "the database file {path} was removed or replaced while the server ran: nothing more is stored. "
    "Put the file in its place with `nightjar restore`, and start the server again"
)

Identity = tuple[int, int]
"""Device and inode: they identify a file whatever its name."""


class OpenFile:
    """The files of an open database: the file itself and its write-ahead log, which has the newest data."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._paths = (path, path.with_name(path.name + "-wal"))
        self._known: dict[Path, Identity] = {}

    def remember(self) -> None:
        """Remember the files that now have these names as the open ones."""
        self._known = {path: found for path in self._paths if (found := _identity(path)) is not None}

    def forget(self) -> None:
        """Forget the open files."""
        self._known = {}

    def problem(self) -> str | None:
        """Say that the names no longer lead to the open files; None if they do. Takes microseconds."""
        if all(_identity(path) == known for path, known in self._known.items()):
            return None
        return REPLACED.format(path=self._path)


def _identity(path: Path) -> Identity | None:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino
