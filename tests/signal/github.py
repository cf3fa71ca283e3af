"""The answers about a branch without merges to the two requests that ask for ancestors."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from bot.core.events import answered
from bot.github.transport.pages import PER_PAGE
from tests.signal.lab import sha_of

COMMIT = "https://github.example/octocat/compiler/commit/{sha}"


class StraightBranch:
    """Answers as GitHub does about a branch whose commits have one parent each, and counts the requests.

    https://docs.github.com/en/rest/commits/commits#list-commits and #compare-two-commits.
    """

    def __init__(self, positions: Iterable[int]) -> None:
        self._positions = {sha_of(position): position for position in positions}
        self._shas = {position: sha for sha, position in self._positions.items()}
        self.requests = 0

    async def getiter(self, url: str, url_vars: Mapping[str, str]) -> AsyncIterator[Any]:
        """Yield the commits of the branch from one back, newest first."""
        assert "/commits" in url, url
        newest = self._positions[url_vars["sha"]]
        for place, position in enumerate(range(newest, -1, -1)):
            if place % PER_PAGE == 0:
                self.requests += 1
            yield answered(_commit(self._shas.get(position) or f"{position:040x}"))

    async def getitem(self, url: str, url_vars: Mapping[str, str]) -> Any:
        """Compare two commits."""
        assert "/compare/" in url, url
        self.requests += 1
        shas = url_vars["basehead"].split("...") if "basehead" in url_vars else [url_vars["base"], url_vars["head"]]
        base, head = (self._positions[sha] for sha in shas)
        status = "identical" if base == head else "ahead" if base < head else "behind"
        return answered(
            {
                "status": status,
                "ahead_by": max(head - base, 0),
                "behind_by": max(base - head, 0),
                "base_commit": _commit(shas[0]),
                "merge_base_commit": _commit(shas[0] if base <= head else shas[1]),
                "total_commits": max(head - base, 0),
                "commits": [],
                "html_url": f"https://github.example/octocat/compiler/compare/{shas[0]}...{shas[1]}",
            }
        )


def _commit(sha: str) -> dict[str, Any]:
    committer = {"date": "2026-11-20T05:10:00Z"}
    return {"sha": sha, "html_url": COMMIT.format(sha=sha), "commit": {"committer": committer}}
