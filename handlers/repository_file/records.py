"""When the files of repositories were last read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from bot.engine.records import Record


@dataclass(frozen=True, slots=True)
class LastScans:
    """When each repository's file was read last, in seconds since 1970, by names in lower case."""

    at: Mapping[str, float] = field(default_factory=dict)


LAST_SCANS = Record("repository-files", 1, LastScans, "when the file of each repository was last read", days=None)


@dataclass(frozen=True, slots=True)
class FileScan:
    """When a repository's file was last read, in seconds since 1970.

    `pushed_at` and `branch` are the time of the newest push and the default branch, as GitHub had listed them just
    before; empty if it had not.
    """

    read_at: float = 0.0
    pushed_at: str = ""
    branch: str = ""


FILE_SCAN = Record(
    "repository-file-scan", 1, FileScan, "when the file of a repository was last read, by its name", days=None
)
