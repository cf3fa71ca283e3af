"""List the files of a repository at a commit, to find the files of tests: labs name them in different ways."""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from cachetools import LRUCache

from bot.core.payload import Payload

if TYPE_CHECKING:
    from bot.github.client import GitHub

REMEMBERED = 16
"""Commits; a list of 20,000 files takes about 2 MB."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class FileLists:
    """Asks GitHub once for a commit's files, which never change, and remembers the last few lists."""

    def __init__(self) -> None:
        self._paths: LRUCache[tuple[str, str], frozenset[str]] = LRUCache(REMEMBERED)

    async def of(self, github: GitHub, repository: str, sha: str) -> frozenset[str]:
        """Return the paths of all files at a commit.

        GitHub lists at most 100,000 files and 7 MB (https://docs.github.com/en/rest/git/trees); files beyond that
        are always missing. Raises `TryAgain` or gidgethub's errors.
        """
        paths = self._paths.get((repository, sha))
        if paths is None:
            url = "/repos/{+repo}/git/trees/{sha}?recursive=1"
            tree = Payload(await github.getitem(url, url_vars={"repo": repository, "sha": sha}))
            # Folders are of the type `tree`, submodules `commit`: https://docs.github.com/rest/git/trees#get-a-tree
            paths = frozenset(item["path"] for item in tree.raw["tree"] if item["type"] == "blob")
            if tree.flag("truncated"):
                log.warning("GitHub does not list all files", repository=repository, sha=sha, listed=len(paths))
            self._paths[repository, sha] = paths
        return paths
