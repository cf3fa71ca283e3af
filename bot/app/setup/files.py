"""Files that set-up writes: whole or not at all, and never over an existing one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

SECRET_MODE, PLAIN_MODE = 0o600, 0o644
LONGEST_NOTE = 4096
"""Bytes of a draft in which its comments are searched for."""


class NewFile:
    """A file that appears at `path` at once, with all of its content.

    Until then there is a draft beside it, which a process that is killed leaves behind.
    """

    def __init__(self, path: Path, mode: int) -> None:
        self.path = path
        self._mode = mode
        self._draft = path.with_name(f"{path.name}.new")

    @property
    def exists(self) -> bool:
        """Whether there is something at the path, be it a broken link."""
        return os.path.lexists(self.path)

    def left_behind(self) -> list[str] | None:
        """Return the comments of a draft that an earlier process left behind; None if there is no draft."""
        try:
            with self._draft.open("rb") as file:
                lines = file.read(LONGEST_NOTE).decode("utf-8", "replace").splitlines()
        except OSError:
            return None
        return [line.removeprefix("#").strip() for line in lines if line.startswith("#")]

    def reserve(self, note: str = "") -> None:
        """Prove that the file can be written, by a draft of `note`. Raises FileExistsError, or another OSError."""
        if self.exists:
            raise FileExistsError(self.path)
        with self._opened() as descriptor:
            os.write(descriptor, note.encode())
            os.fsync(descriptor)

    def discard(self) -> None:
        """Remove the draft."""
        self._draft.unlink(missing_ok=True)

    def write(self, text: str) -> None:
        """Write the file. Raises FileExistsError if there is one by now, or another OSError."""
        with self._opened() as descriptor:
            left = memoryview(text.encode())
            while left:
                left = left[os.write(descriptor, left) :]
            os.fsync(descriptor)
        try:
            # Unlike a rename, a link fails if the file exists.
            self.path.hardlink_to(self._draft)
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links
            if self.exists:
                raise FileExistsError(self.path) from None
            self._draft.replace(self.path)
        self.discard()
        _sync_folder(self.path.parent)

    @contextmanager
    def _opened(self) -> Iterator[int]:
        descriptor = os.open(self._draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, self._mode)
        try:
            os.fchmod(descriptor, self._mode)
            yield descriptor
        finally:
            os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    # Some file systems cannot; the file itself is written by then.
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
