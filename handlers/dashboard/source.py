"""Find the place of a test in the source on GitHub, if a report or the test's ID names a file. No I/O."""

from __future__ import annotations

from urllib.parse import quote

from bot.core.patterns import Pattern
from bot.results.report.annotations import line_of
from bot.results.report.findings import NewFailure

LONGEST_PATH = 300
_FILE = Pattern(r"[^\x00-\x1f\x7f\\]*[^\x00-\x1f\x7f\\/]\.[a-z][A-Za-z0-9+-]{0,9}")
"""A path whose last part has a suffix in lower case: a file, not a class in the name of a test."""
STEPS = ("", ".", "..")
"""Parts that no path inside a repository has: `..` would lead a link out of the repository."""


def source_place(failure: NewFailure) -> tuple[str, int | None]:
    """Return the file and the line of a failed test; the line is None if no report names it.

    The path is empty if it is unknown or not safe (`is_safe_path`).
    """
    path = failure.path
    return (path, line_of(failure)) if is_safe_path(path) else ("", None)


def file_in_id(test: str) -> str:
    """Return the file at the start of a test's ID, as pytest writes it; empty if there is none."""
    path, separator, _ = test.partition("::")
    return path if separator and is_safe_path(path) else ""


def is_safe_path(path: str) -> bool:
    """Say whether a text can be linked as a file of the repository; labs send these texts."""
    if len(path) > LONGEST_PATH or any(step in STEPS for step in path.split("/")):
        return False
    return _FILE.fullmatch(path) is not None


def source_url(page: str, sha: str, path: str, line: int | None) -> str:
    """Return the address of a file at a commit; `page` is that of the repository on GitHub."""
    return f"{page}/blob/{sha}/{quote(path, errors='replace')}{f'#L{line}' if line else ''}"
