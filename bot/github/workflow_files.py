"""Find out whether a change touches `.github/workflows`: an App needs a permission of its own for such a change.

GitHub refuses it with the same sentence as for any permission (https://github.com/chdsbd/kodiak/issues/641), so the
changed files are read. All these requests follow only after a refusal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.core.payload import Payload
from bot.github.errors import is_forbidden, is_not_found, message_of
from bot.github.forbidden import is_generic

if TYPE_CHECKING:
    from bot.github.client import GitHub

FOLDER = ".github/workflows/"
PULL = "/repos/{+repo}/pulls/{number}"
PULL_FILES = "/repos/{+repo}/pulls/{number}/files"
MOST_PULL_FILES = 3000
"""Files that GitHub lists at most: https://docs.github.com/rest/pulls/pulls#list-pull-requests-files"""
COMPARE = "/repos/{+repo}/compare/{base}...{head}?per_page=1"
MOST_COMPARED_FILES = 300
"""Files that the first page has at most: https://docs.github.com/rest/commits/commits#compare-two-commits"""
CONTENTS = "/repos/{+repo}/contents/.github/workflows?ref={sha}"
PARENT_FOLDER = "/repos/{+repo}/contents/.github?ref={sha}"
"""It lists folders with the SHA of their tree: https://docs.github.com/rest/repos/contents#get-repository-content"""


def may_lack_workflows(error: BaseException) -> bool:
    """Return whether a refusal may be for workflow files: it is a 403 that gives no other cause."""
    return is_forbidden(error) and is_generic(message_of(error))


async def pull_changes_workflows(github: GitHub, repository: str, number: int) -> bool:
    """Return whether a pull request changes workflow files."""
    where, listed = {"repo": repository, "number": str(number)}, 0
    async for item in github.getiter(PULL_FILES, url_vars=where):
        if _is_workflow(Payload(item, "file")):
            return True
        listed += 1
    if listed < MOST_PULL_FILES:
        return False
    pull = Payload(await github.getitem(PULL, url_vars=where), "pull request")
    return await move_changes_workflows(github, repository, pull.string("base", "sha"), pull.string("head", "sha"))


async def move_changes_workflows(github: GitHub, repository: str, before: str | None, sha: str) -> bool:
    """Return whether a branch that moves from `before` to `sha` gets other workflow files; None: it is a new branch."""
    if before is None:
        return await _exists(github, repository, sha)
    answer = await github.getitem(COMPARE, url_vars={"repo": repository, "base": before, "head": sha})
    comparison = Payload(answer, "comparison")
    files = list(comparison.items("files"))
    if any(map(_is_workflow, files)):
        return True
    # A list of files may be cut short, so compare the trees of the folder.
    if len(files) < MOST_COMPARED_FILES:
        return False
    start = comparison.string("merge_base_commit", "sha")
    return await _folder(github, repository, start) != await _folder(github, repository, sha)


async def _exists(github: GitHub, repository: str, sha: str) -> bool:
    try:
        return bool(await github.getitem(CONTENTS, url_vars={"repo": repository, "sha": sha}))
    except Exception as error:
        if is_not_found(error):
            return False
        raise


async def _folder(github: GitHub, repository: str, sha: str) -> str | None:
    """Return the SHA of the folder's tree at a commit or branch, None if there is no such folder."""
    try:
        listing = await github.getitem(PARENT_FOLDER, url_vars={"repo": repository, "sha": sha})
    except Exception as error:
        if is_not_found(error):
            return None
        raise
    entries = (Payload(item, "entry") for item in listing)
    return next((entry.string("sha") for entry in entries if entry.text("path") == FOLDER.rstrip("/")), None)


def _is_workflow(file: Payload) -> bool:
    # Include the old name of a moved file: moving a workflow away changes it too.
    return any(file.text(name).startswith(FOLDER) for name in ("filename", "previous_filename"))
