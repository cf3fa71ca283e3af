"""What the bot remembers of the branches that it watches."""

from __future__ import annotations

from dataclasses import dataclass

from bot.engine.records import Record
from handlers.main_failures.decide import KnownFailures


@dataclass(frozen=True, slots=True)
class WatchedBranches:
    """The branches that are watched, or that have an issue from an earlier time."""

    branches: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NextScan:
    """The time of the next scan of a branch, or of the last one, in seconds since 1970."""

    scan_at: float


FAILURES = Record("main-failures", 1, KnownFailures, "what fails on a watched branch, and what was reported", days=None)
WATCHED_BRANCHES = Record(
    "main-failures-branches", 1, WatchedBranches, "the branches that are watched, or were", days=None
)
NEXT_SCAN = Record("main-failures-scan", 1, NextScan, "when a watched branch is scanned next", days=90)
RECORDS = (FAILURES, WATCHED_BRANCHES, NEXT_SCAN)
