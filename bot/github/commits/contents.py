"""Read files of a repository at a commit (https://docs.github.com/en/rest/repos/contents)."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.core.events import Payload
from bot.github.errors import is_not_found

if TYPE_CHECKING:
    from bot.github.client import GitHub

CONTENTS = "/repos/{+repo}/contents/{+path}{?ref}"
COMMIT = "/repos/{+repo}/git/commits/{sha}"
BLOB = "/repos/{+repo}/git/blobs/{sha}"

FILE, FOLDER = "file", "dir"
PLAIN_FILE = "100644"
"""git's mode of a file that is neither a program nor a symbolic link."""


@dataclass(frozen=True, slots=True)
class FoundFile:
    """The object at a path: `kind` is file, dir, symlink or submodule; `sha` identifies its content (for a dir: `dir`).

    `raw` is empty for other kinds than files, and for a file that is too large for GitHub to include (1 MB).
    """

    kind: str
    sha: str
    size: int = 0
    raw: bytes = b""


async def found_at(github: GitHub, repository: str, path: str, ref: str = "") -> FoundFile | None:
    """Return the object at a path of a commit or branch, by default the default branch; None if there is none.

    Costs one request. GitHub itself follows a symbolic link to a file of the repository.
    """
    url_vars = {"repo": repository, "path": path, **({"ref": ref} if ref else {})}
    try:
        answer = await github.getitem(CONTENTS, url_vars=url_vars)
    except Exception as error:
        if is_not_found(error):
            return None
        raise
    # For a folder, GitHub returns a list: https://docs.github.com/en/rest/repos/contents#get-repository-content
    if isinstance(answer, list):
        return FoundFile(FOLDER, FOLDER)
    item = Payload(answer, "contents")
    # From 1 MB on, `encoding` is `none` and there is no content.
    raw = base64.b64decode(item.text("content")) if item.text("encoding") == "base64" else b""
    return FoundFile(item.string("type"), item.string("sha"), item.integer("size"), raw)


async def read_blob(github: GitHub, repository: str, sha: str) -> bytes:
    """Return the content of a file by git's hash of it; unlike `found_at`, also above 1 MB, up to 100 MB.

    Costs one request: https://docs.github.com/en/rest/git/blobs#get-a-blob
    """
    blob = Payload(await github.getitem(BLOB, url_vars={"repo": repository, "sha": sha}), "blob")
    return base64.b64decode(blob.text("content"))


async def knows_commit(github: GitHub, repository: str, sha: str) -> bool:
    """Return whether GitHub's API shows a commit; if not, a 404 for a file at that commit proves nothing."""
    try:
        await github.getitem(COMMIT, url_vars={"repo": repository, "sha": sha})
    except Exception as error:
        if is_not_found(error):
            return False
        raise
    return True
