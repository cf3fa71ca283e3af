"""GitHub's error answers.

https://docs.github.com/rest/using-the-rest-api/troubleshooting-the-rest-api
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

DOCUMENTATION_URL = "https://docs.github.com/rest"
NOT_FOUND = "Not Found"
NOT_ACCESSIBLE = "Resource not accessible by integration"
ARCHIVED = "Repository was archived so is read-only."
LOCKED = "Unable to create {what} because issue is locked."
LOCKING = "https://docs.github.com/articles/locking-conversations/"
BAD_CREDENTIALS = "Bad credentials"
REQUIRES_AUTHENTICATION = "Requires authentication"


class ApiError(Exception):
    """Answer a request with one of GitHub's errors.

    `mistake` marks an error that a correct client never causes (a body that breaks the schema, a name GitHub
    does not know): such requests are also recorded in `GitHubSandbox.violations`.
    """

    def __init__(
        self,
        status: int,
        message: str,
        *,
        errors: Sequence[str | Mapping[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        mistake: bool = False,
        documentation_url: str = DOCUMENTATION_URL,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = list(errors)
        self.headers = dict(headers or {})
        self.mistake = mistake
        self.documentation_url = documentation_url

    def body(self) -> dict[str, Any]:
        """Return the error as GitHub's JSON body."""
        body: dict[str, Any] = {"message": self.message}
        if self.errors:
            body["errors"] = self.errors
        return body | {"documentation_url": self.documentation_url, "status": str(self.status)}


def not_found() -> ApiError:
    """Return the 404 that GitHub also sends for objects that the caller may not see."""
    return ApiError(404, NOT_FOUND)


def locked(kind: str) -> ApiError:
    """Return the 403 for a comment or reaction in a locked conversation; no App may write there."""
    return ApiError(403, LOCKED.format(what=kind), documentation_url=LOCKING)


def not_accessible(permissions: Sequence[str] = (), level: str = "") -> ApiError:
    """Return the 403 for an App that lacks a permission; a header names the permissions, of which one is enough."""
    accepted = "; ".join(f"{permission}={level}" for permission in permissions)
    return ApiError(403, NOT_ACCESSIBLE, headers={"X-Accepted-GitHub-Permissions": accepted} if accepted else None)


def refused(message: str, *errors: str | Mapping[str, str]) -> ApiError:
    """Return the 422 for a well-formed request that conflicts with the current state."""
    return ApiError(422, message, errors=errors)


def invalid(field: str, message: str, *, resource: str = "Request") -> ApiError:
    """Return the 422 for a request that a correct client would not have sent."""
    error = {"resource": resource, "field": field, "code": "custom", "message": message}
    return ApiError(422, "Validation Failed", errors=[error], mistake=True)
