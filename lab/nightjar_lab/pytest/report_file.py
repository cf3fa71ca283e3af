"""Write each line of a report to its file at once, so that it survives the process.

`os.write` hands a line to the operating system, so a crash of the process loses nothing; a crash of the machine may
lose the last seconds. Lines that a full disk refuses wait in memory, in order, and are retried with each new line, so
that no line is torn.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from nightjar_lab.pytest import run_texts as texts

MOST_WAITING = 16 << 20
"""The most bytes that wait for room on the disk; further lines are lost, and counted."""
MOST_NAMES = 10_000


class ReportNotOpened(Exception):
    """The file cannot be opened; the text is the reason."""


class ReportFile:
    """An open report. A child that a test forks writes nothing: the lines would come twice."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self.reason = ""
        """The reason why the newest line could not be written."""
        self.lines = 0
        self.lost = 0
        self._descriptor = descriptor
        self._process = os.getpid()
        self._waiting = bytearray()

    def write(self, line: bytes) -> None:
        """Write a line, or hold it until there is room. Raises nothing."""
        if os.getpid() != self._process:
            return
        self.lines += 1
        if len(self._waiting) + len(line) > MOST_WAITING:
            self.lost += 1
            return
        self._waiting += line
        self._flush()

    def _flush(self) -> None:
        try:
            while self._waiting:
                # A blocking descriptor takes a byte at least, or fails.
                del self._waiting[: os.write(self._descriptor, self._waiting)]
        except OSError as error:
            self.reason = error.strerror or type(error).__name__

    @property
    def missing(self) -> int:
        """Count the lines that are not in the file."""
        return self.lost + self._waiting.count(b"\n")

    def close(self) -> None:
        """Try once more to write the waiting lines, and close the file. May be called twice."""
        if os.getpid() == self._process and self._descriptor >= 0:
            self._flush()
            try:
                os.close(self._descriptor)
            except OSError as error:
                self.reason = error.strerror or type(error).__name__
            self._descriptor = -1


def open_report(path: Path) -> ReportFile:
    """Open an empty report for writing. The path may also be a device, or a pipe that another process reads.

    Raises `ReportNotOpened`. Never waits, whatever the path is.
    """
    return _opened(path, os.O_TRUNC)


def open_report_in(folder: Path) -> ReportFile:
    """Create a report of its own in a folder: a script may run pytest several times. Raises `ReportNotOpened`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ReportNotOpened(error.strerror or type(error).__name__) from None
    for number in range(1, MOST_NAMES):
        name = "pytest.jsonl" if number == 1 else f"pytest-{number}.jsonl"
        try:
            return _opened(folder / name, os.O_EXCL)
        except FileExistsError:
            continue
    raise ReportNotOpened(texts.REPORT_TOO_MANY.format(most=MOST_NAMES))


def _opened(path: Path, flags: int) -> ReportFile:
    # Without O_NONBLOCK, this would wait for a reader of a pipe: https://man7.org/linux/man-pages/man7/fifo.7.html
    nonblocking = getattr(os, "O_NONBLOCK", 0)
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_NOCTTY | nonblocking | flags, 0o666)
    except FileExistsError:
        raise
    except (OSError, ValueError) as error:
        if getattr(error, "errno", None) == errno.ENXIO:
            raise ReportNotOpened(texts.REPORT_NO_READER) from None
        raise ReportNotOpened(getattr(error, "strerror", None) or str(error)) from None
    if nonblocking:
        os.set_blocking(descriptor, True)
    if stat.S_ISDIR(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ReportNotOpened(os.strerror(errno.EISDIR))
    return ReportFile(path, descriptor)
