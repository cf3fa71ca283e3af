"""What the bot remembers of pending merges."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bot.core.events import Person
from bot.engine.records import Record


@dataclass(frozen=True, slots=True)
class PendingMerge:
    """A merge that somebody asked for, of this commit into this branch, where they asked (`url`) and when (ISO 8601).

    `queued`: we have added it to GitHub's merge queue; all that the bot can still do is to remove it from there.
    `refused`: GitHub refused the merge for a reason that it does not show us, and a comment says that the merge waits.
    """

    sha: str
    base: str
    by: Person
    url: str
    asked_at: str
    queued: bool = False
    refused: bool = False

    def is_same(self, other: PendingMerge) -> bool:
        """Say whether both are from the same command, whatever their current state."""
        return replace(self, queued=other.queued, refused=other.refused) == other


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """The newest request about the merge of a pull request: one that is pending, or when the last one ended.

    `ended_at` is in ISO 8601, empty where that is not known.
    """

    pending: PendingMerge | None = None
    ended_at: str = ""


@dataclass(frozen=True, slots=True)
class WatchedCommit:
    """The pull requests that are to be refreshed when something happens to a commit."""

    numbers: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RefreshCount:
    """The number of refreshes of a pull request that have begun."""

    begun: int = 0


MERGE_REQUEST = Record("merge", 1, MergeRequest, "the pending merge of a pull request", days=365)
MERGE_WATCH = Record("merge-watch", 1, WatchedCommit, "the pull requests whose merge waits for a commit", days=90)
REFRESH_COUNT = Record("merge-refreshes", 1, RefreshCount, "how many refreshes of a pull request have begun", days=365)
RECORDS = (MERGE_REQUEST, MERGE_WATCH, REFRESH_COUNT)
