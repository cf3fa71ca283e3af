"""URLs that GitHub has answered with an object: the bot doubts a 404 there at first, because parts of GitHub lag."""

from __future__ import annotations

from collections.abc import Callable

from cachetools import LRUCache

from bot.core.patterns import Pattern

DOUBTED_FOR = 30.0
"""Seconds for which the bot treats a 404 for such a URL as a fault of GitHub."""
REMEMBERED = 20_000

# These are removed all the time, and callers check whether they exist.
_COMES_AND_GOES = Pattern(
    r"/git/refs?/|/branches/|/contents/|/collaborators/|/labels/|/comments/\d+$|/reactions/\d+$|/rules/|/compare/"
    # The list of a branch's commits: the branch is in the query, which is not part of the path.
    r"|/repos/[^/]+/[^/]+/commits$"
)


class SeenAddresses:
    """The paths at which each installation has seen an object, `REMEMBERED` of them at most."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._missing_since: LRUCache[tuple[str, str], float | None] = LRUCache(REMEMBERED)

    def note_object(self, installation: str, path: str) -> None:
        """Record that an object exists."""
        if not _COMES_AND_GOES.search(path):
            self._missing_since[installation, path] = None

    def note_removal(self, installation: str, path: str) -> None:
        """Record that we have removed an object ourselves."""
        self._missing_since.pop((installation, path), None)

    def doubts(self, installation: str, path: str) -> bool:
        """Record a 404, and return whether it is too early to believe it."""
        key = (installation, path)
        if key not in self._missing_since:
            return False
        since = self._missing_since[key]
        if since is None:
            since = self._missing_since[key] = self._clock()
        return self._clock() - since < DOUBTED_FOR
