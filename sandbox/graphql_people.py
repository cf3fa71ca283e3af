"""Repositories as a person sees them: `repository(owner: $a, name: $b)` under aliases, with some of their fields."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from sandbox.model.sign_in import UserToken
from sandbox.routing import ApiResponse

if TYPE_CHECKING:
    from sandbox.state import GitHubState

Json = dict[str, Any]
_REPOSITORY = re.compile(r"(\w+)\s*:\s*repository\(\s*owner\s*:\s*\$(\w+)\s*,\s*name\s*:\s*\$(\w+)\s*\)")


def answer_person(github: GitHubState, token: UserToken, request: Json) -> ApiResponse:
    """Answer a query. Objects that the person may not see are null, with an error each."""
    variables = request.get("variables") or {}
    data: Json = {}
    errors = []
    for alias, owner, name in _REPOSITORY.findall(str(request.get("query", ""))):
        full_name = f"{variables.get(owner)}/{variables.get(name)}"
        repository = github.repositories.get(full_name.lower()) or github.moved.get(full_name.lower())
        if repository is None or not token.reads(repository):
            data[alias] = None
            text = f"Could not resolve to a Repository with the name '{full_name}'."
            errors.append({"type": "NOT_FOUND", "path": [alias], "message": text})
            continue
        role = repository.role(token.user)
        data[alias] = {"databaseId": repository.id, "isPrivate": repository.private, "viewerPermission": role.upper()}
    return ApiResponse({"data": data, **({"errors": errors} if errors else {})})
