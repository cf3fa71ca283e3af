"""The form of a verdict about changed files. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightjar_formats.terminal import escape_controls

from bot.github.text.markdown import truncate

if TYPE_CHECKING:
    from handlers.changed_files.changes import ChangedFiles

LONGEST_NAME = 60
"""The most characters of a file's name that a reason shows: its end, which identifies a file better."""


def counted_files(changes: ChangedFiles) -> str:
    """Return `1 file` or `12 files`."""
    return "1 file" if changes.count == 1 else f"{changes.count} files"


def shown_name(name: str) -> str:
    """Return the end of a file's name, which anybody can choose, as plain text."""
    return truncate(escape_controls(name)[::-1], LONGEST_NAME)[::-1]
