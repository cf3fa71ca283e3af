"""Whether a change touches `.github/workflows`: an App may not write such a change without a permission for it.

GitHub refuses it with the same sentence as for any permission (https://github.com/chdsbd/kodiak/issues/641), so the
changed files are looked at. All of it is asked only after a refusal.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.github.errors import is_forbidden, is_not_found, message_of
from bot.github.forbidden import is_generic
from bot.payload import Payload

if TYPE_CHECKING:
    from bot.github.client import GitHub

FOLDER = ".github/workflows/"
PULL_FILES = "/repos/{+repo}/pulls/{number}/files"
"""GitHub lists 3,000 files at most: https://docs.github.com/rest/pulls/pulls#list-pull-requests-files"""
COMPARE = "/repos/{+repo}/compare/{base}...{head}?per_page=1"
"""The first page has the first 300 files: https://docs.github.com/rest/commits/commits#compare-two-commits"""
CONTENTS = "/repos/{+repo}/contents/.github/workflows?ref={sha}"


def may_lack_workflows(error: BaseException) -> bool:
    """Say whether a refusal may be for workflow files: it is a 403 that gives no other cause."""
    return is_forbidden(error) and is_generic(message_of(error))


async def pull_changes_workflows(github: GitHub, repository: str, number: int) -> bool:
    """Say whether a pull request changes workflow files."""
    async for item in github.getiter(PULL_FILES, url_vars={"repo": repository, "number": str(number)}):
        if _is_workflow(Payload(item, "file")):
            return True
    return False


async def move_changes_workflows(github: GitHub, repository: str, before: str | None, sha: str) -> bool:
    """Say whether a branch that moves from `before` to `sha` gets other workflow files; None: it is a new branch."""
    if before is None:
        try:
            return bool(await github.getitem(CONTENTS, url_vars={"repo": repository, "sha": sha}))
        except Exception as error:
            if is_not_found(error):
                return False
            raise
    answer = await github.getitem(COMPARE, url_vars={"repo": repository, "base": before, "head": sha})
    return any(map(_is_workflow, Payload(answer, "comparison").items("files")))


def _is_workflow(file: Payload) -> bool:
    return any(file.text(name).startswith(FOLDER) for name in ("filename", "previous_filename"))
