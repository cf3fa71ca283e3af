"""Where a test stands in the source on GitHub: only where a report or the test's ID plainly says so. No I/O."""

from __future__ import annotations

from urllib.parse import quote

from bot.core.patterns import Pattern
from bot.results.report.annotations import line_of
from bot.results.report.findings import NewFailure

LONGEST_PATH = 300
_FILE = Pattern(r"[^\x00-\x1f\x7f\\]*[^\x00-\x1f\x7f\\/]\.[a-z][A-Za-z0-9+-]{0,9}")
"""A file, and no class of a test's name: its last part has a suffix."""
STEPS = ("", ".", "..")
"""What no path inside a repository has between its slashes."""


def source_place(failure: NewFailure) -> tuple[str, int | None]:
    """Return the file of a failed test and the line, None where no report says it; an empty path if it is not safe."""
    path = failure.path
    return (path, line_of(failure)) if is_safe_path(path) else ("", None)


def file_in_id(test: str) -> str:
    """Return the file that a test's ID begins with, as in pytest's; empty where it does not."""
    path, separator, _ = test.partition("::")
    return path if separator and is_safe_path(path) else ""


def is_safe_path(path: str) -> bool:
    """Say whether a text is the path of a file below a repository's root, and nothing else."""
    if len(path) > LONGEST_PATH or any(step in STEPS for step in path.split("/")):
        return False
    return _FILE.fullmatch(path) is not None


def source_url(page: str, sha: str, path: str, line: int | None) -> str:
    """Return the address of a file at a commit; `page` is that of the repository on GitHub."""
    return f"{page}/blob/{sha}/{quote(path, errors='replace')}{f'#L{line}' if line else ''}"
