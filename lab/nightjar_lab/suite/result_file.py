"""Read and write the JSONL file of a run: one line for each result, written at once. It is the run's only state."""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from nightjar_lab.suite import texts
from nightjar_lab.suite.result import SuiteResult, record_of, result_of
from nightjar_lab.suite.runner import SuiteInfo

FORMAT = 1


class FileUnusable(Exception):
    """A file cannot be read or written, or belongs to another run; the text says what to do."""


class SuiteResultFile:
    """The file of one run, open for appending. A second run of the same file is refused while the first one works.

    Each line is handed to the operating system at once, so SIGKILL loses no result. A line that was cut off by a full
    disk or a power failure is left out, and its case runs again.
    """

    def __init__(self, path: Path, info: SuiteInfo, *, fresh: bool = False, sha: str = "") -> None:
        """Open a file, or create it; `sha` is the commit that is tested, empty if unknown. Raises FileUnusable."""
        self.path = path
        self._sha = sha
        refuse_device(path)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NONBLOCK, 0o666)
        except OSError as error:
            raise FileUnusable(texts.CANNOT_WRITE.format(path=path, reason=error.strerror)) from error
        try:
            self.results = self._begin(info, fresh=fresh)
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> SuiteResultFile:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def append(self, result: SuiteResult) -> None:
        """Store a result. Raises FileUnusable."""
        self._write(record_of(result))
        self.results[result.case] = result

    def _begin(self, info: SuiteInfo, *, fresh: bool) -> dict[str, SuiteResult]:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise FileUnusable(texts.IN_USE.format(path=self.path)) from error
        content = b""
        if fresh:
            os.ftruncate(self._descriptor, 0)
        else:
            content = self.path.read_bytes()
        if not content:
            self._write(header_of(info, self._sha))
            return {}
        if not content.endswith(b"\n"):
            # End the line that was cut off, so that no other line is lost with it.
            self._write_bytes(b"\n")
        header, results = read_lines(self.path, content)
        _check(self.path, header, header_of(info, self._sha))
        return {result.case: result for result in results}

    def _write(self, value: dict[str, Any]) -> None:
        self._write_bytes(json.dumps(value).encode() + b"\n")

    def _write_bytes(self, line: bytes) -> None:
        try:
            while line:
                line = line[os.write(self._descriptor, line) :]
        except OSError as error:
            raise FileUnusable(texts.CANNOT_WRITE.format(path=self.path, reason=error.strerror)) from error


def header_of(info: SuiteInfo, sha: str = "") -> dict[str, Any]:
    """Return the first line of a file; it has the commit if that is known."""
    return {
        "format": FORMAT,
        "flow": {"name": info.flow, "backend": info.backend, "version": info.flow_version},
        "suite": {"name": info.suite, "version": info.suite_version},
        **({"commit": sha} if sha else {}),
        **({"quantization": info.quantization} if info.quantization else {}),
    }


def read_results(path: Path) -> tuple[dict[str, Any], list[SuiteResult]]:
    """Read the header and the results of a file. Raises FileUnusable."""
    refuse_device(path)
    try:
        content = path.read_bytes()
    except OSError as error:
        raise FileUnusable(texts.CANNOT_READ.format(path=path, reason=error.strerror)) from error
    return read_lines(path, content)


def read_lines(path: Path, content: bytes) -> tuple[dict[str, Any], list[SuiteResult]]:
    """Read the lines of a file, without one that was cut off. Raises FileUnusable if the first line is not a header."""
    records = list(_records(content.split(b"\n")))
    if not records or records[0].get("format") != FORMAT or not {"flow", "suite"} <= set(records[0]):
        raise FileUnusable(texts.NOT_OURS.format(path=path))
    return records[0], list(_results(records[1:]))


def _records(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    for line in lines:
        try:
            record = json.loads(line)  # noqa: TID251  # ours; errors of outputs may be infinite
        except ValueError:
            continue
        if isinstance(record, dict):
            yield record


def _results(records: Iterable[dict[str, Any]]) -> Iterator[SuiteResult]:
    for record in records:
        try:
            yield result_of(record)
        except (KeyError, TypeError, ValueError, AttributeError):
            continue


def _check(path: Path, stored: dict[str, Any], expected: dict[str, Any]) -> None:
    for part in ("flow", "suite"):
        if stored.get(part) != expected[part]:
            raise FileUnusable(
                texts.OTHER_RUN.format(
                    path=path, what=part, stored=_shown(stored.get(part)), now=_shown(expected[part])
                )
            )

    commits = [header.get("commit") or texts.UNKNOWN_COMMIT for header in (stored, expected)]
    if commits[0] != commits[1]:
        raise FileUnusable(texts.OTHER_RUN.format(path=path, what="commit", stored=commits[0], now=commits[1]))


def _shown(description: Any) -> str:
    return (
        f"{description.get('name')} {description.get('version')}".strip()
        if isinstance(description, dict)
        else str(description)
    )


def refuse_device(path: Path) -> None:
    """Raise FileUnusable if a path is a folder, a device or a pipe, from which nothing could be read back."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode):
        raise FileUnusable(texts.NO_FILE.format(path=path))


def check_writable(path: Path) -> None:
    """Raise FileUnusable if a report cannot be written, so that this shows before the run, not hours later."""
    refuse_device(path)
    temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(b"")
        temporary.unlink()
    except OSError as error:
        raise FileUnusable(texts.CANNOT_WRITE.format(path=path, reason=error.strerror)) from error


def write_report(path: Path, text: str) -> None:
    """Write a report atomically, so that nobody reads half of it. Raises FileUnusable."""
    refuse_device(path)
    temporary = path.with_name(f".{path.name[:100]}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(text.encode("utf-8", "backslashreplace"))
        temporary.replace(path)
    except OSError as error:
        raise FileUnusable(texts.CANNOT_WRITE.format(path=path, reason=error.strerror)) from error
    finally:
        temporary.unlink(missing_ok=True)


def append_report(path: Path, text: str) -> None:
    """Append a report to a file to which other steps write too. Raises FileUnusable."""
    try:
        with path.open("ab") as file:
            file.write(text.encode("utf-8", "backslashreplace"))
    except OSError as error:
        raise FileUnusable(texts.CANNOT_WRITE.format(path=path, reason=error.strerror)) from error
