"""List the files of a repository at a commit, to find the files of tests: labs name them in different ways."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from cachetools import LRUCache

from bot.core.events import Payload
from bot.github.commits.contents import PLAIN_FILE
from bot.results.compare.codeowners import PATHS as CODEOWNERS

if TYPE_CHECKING:
    from bot.github.client import GitHub

REMEMBERED = 16
"""Commits; a list of 20,000 files takes about 2 MB."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class CommitFiles:
    """The files at a commit: their paths, and git's hash and the bytes of CODEOWNERS, empty and 0 without one.

    `special` are the paths of programs and symbolic links.
    """

    paths: frozenset[str]
    codeowners: str = ""
    codeowners_bytes: int = 0
    is_complete: bool = True
    special: frozenset[str] = frozenset()


class FileLists:
    """Asks GitHub once for a commit's files, which never change, and remembers the last few lists."""

    def __init__(self) -> None:
        self._files: LRUCache[tuple[str, str], CommitFiles] = LRUCache(REMEMBERED)

    async def read(self, github: GitHub, repository: str, sha: str) -> CommitFiles:
        """Return the files at a commit.

        GitHub lists at most 100,000 files and 7 MB (https://docs.github.com/en/rest/git/trees); files beyond that
        are always missing. Raises `TryAgain` or gidgethub's errors.
        """
        files = self._files.get((repository, sha))
        if files is None:
            url = "/repos/{+repo}/git/trees/{sha}?recursive=1"
            tree = Payload(await github.getitem(url, url_vars={"repo": repository, "sha": sha}))
            # Folders are of the type `tree`, submodules `commit`: https://docs.github.com/rest/git/trees#get-a-tree
            blobs = {item["path"]: item for item in tree.raw["tree"] if item["type"] == "blob"}
            paths = frozenset(blobs)
            owners = next((Payload(blobs[path], "tree") for path in CODEOWNERS if path in blobs), None)
            if tree.flag("truncated"):
                log.warning("GitHub does not list all files", repository=repository, sha=sha, listed=len(paths))
            files = self._files[repository, sha] = CommitFiles(
                paths,
                owners.string("sha") if owners else "",
                owners.integer("size") if owners else 0,
                is_complete=not tree.flag("truncated"),
                special=frozenset(path for path, item in blobs.items() if item.get("mode", PLAIN_FILE) != PLAIN_FILE),
            )
        return files
