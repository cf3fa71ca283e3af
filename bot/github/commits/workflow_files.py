"""Find out whether a change touches `.github/workflows`: for that, an App needs the *Workflows* permission.

Without it, GitHub's refusal has the same sentence as for any missing permission
(https://github.com/chdsbd/kodiak/issues/641), so we read the list of changed files. These requests are only sent after
a refusal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.core.events import Payload
from bot.github.errors import is_forbidden, is_not_found, message_of
from bot.github.forbidden import is_generic

if TYPE_CHECKING:
    from bot.github.client import GitHub

FOLDER = ".github/workflows/"
PULL = "/repos/{+repo}/pulls/{number}"
PULL_FILES = "/repos/{+repo}/pulls/{number}/files"
MOST_PULL_FILES = 3000
"""The most files that GitHub lists: https://docs.github.com/rest/pulls/pulls#list-pull-requests-files"""
COMPARE = "/repos/{+repo}/compare/{base}...{head}?per_page=1"
MOST_COMPARED_FILES = 300
"""The most files that the first page has: https://docs.github.com/rest/commits/commits#compare-two-commits"""
CONTENTS = "/repos/{+repo}/contents/.github/workflows?ref={sha}"
PARENT_FOLDER = "/repos/{+repo}/contents/.github?ref={sha}"
"""Lists folders with the SHA of their tree: https://docs.github.com/rest/repos/contents#get-repository-content"""


def may_lack_workflows(error: BaseException) -> bool:
    """Return whether workflow files may be the reason for a refusal: a 403 that names no other cause."""
    return is_forbidden(error) and is_generic(message_of(error))


async def pull_changes_workflows(github: GitHub, repository: str, number: int) -> bool:
    """Return whether a pull request changes workflow files."""
    url_vars, listed = {"repo": repository, "number": str(number)}, 0
    async for item in github.getiter(PULL_FILES, url_vars=url_vars):
        if _is_workflow(Payload(item, "file")):
            return True
        listed += 1
    if listed < MOST_PULL_FILES:
        return False
    pull = Payload(await github.getitem(PULL, url_vars=url_vars), "pull request")
    return await move_changes_workflows(github, repository, pull.string("base", "sha"), pull.string("head", "sha"))


async def move_changes_workflows(github: GitHub, repository: str, old_sha: str | None, sha: str) -> bool:
    """Return whether moving a branch from `old_sha` (None if it is new) to `sha` changes its workflow files."""
    if old_sha is None:
        return await _exists(github, repository, sha)
    answer = await github.getitem(COMPARE, url_vars={"repo": repository, "base": old_sha, "head": sha})
    comparison = Payload(answer, "comparison")
    files = list(comparison.items("files"))
    if any(map(_is_workflow, files)):
        return True
    # The list of files may be truncated, so compare the trees of the folder.
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
    # Check the old name of a moved file too: moving a workflow out of the folder is a change.
    return any(file.text(name).startswith(FOLDER) for name in ("filename", "previous_filename"))
