"""Refuse merges and moved branches that change workflow files, unless the App has the permission `workflows`.

GitHub answers as for any missing permission: https://github.com/chdsbd/kodiak/issues/641
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from sandbox.errors import not_accessible
from sandbox.git import changes

if TYPE_CHECKING:
    from sandbox.routing import Call

FOLDER = ".github/workflows/"


def check_workflows(call: Call, old_files: Mapping[str, str], new_files: Mapping[str, str]) -> None:
    """Raise GitHub's 403 `ApiError` if workflow files differ between two trees and the token may not write them."""
    if call.token is None or call.token.may("workflows", "write"):
        return
    if any(change.path.startswith(FOLDER) for change in changes(old_files, new_files)):
        raise not_accessible(call.route.needs, call.route.level)
