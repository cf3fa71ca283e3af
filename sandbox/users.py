"""People, organizations, bots and teams."""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, Protocol

Role = Literal["admin", "maintain", "write", "triage", "read", "none"]
# The two older words that `permission` still uses, next to `role_name`.
# https://docs.github.com/rest/collaborators/collaborators#get-repository-permissions-for-a-user
LEGACY_PERMISSION: dict[str, str] = {"maintain": "write", "triage": "read"}


class Site(Protocol):
    """The GitHub of an account."""

    @property
    def url(self) -> str:
        """Return the address of API and pages."""


@dataclass(eq=False)
class User:
    """Anyone who can act: a person, an organization, or an App's bot."""

    github: Site
    id: int
    login: str
    created_at: datetime
    type: Literal["User", "Organization", "Bot"] = "User"
    deleted: bool = False
    """Whether the account was deleted. What it wrote stays, with null as its author."""
    app_id: int | None = None
    """The App whose bot this is."""

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("BOT" if self.type == "Bot" else "U", self.id)

    def __repr__(self) -> str:
        return f"@{self.login}"


By = str | User
"""Who acts: an account, or its login."""


@dataclass(eq=False)
class Team:
    """A team of an organization that has access to the repository."""

    id: int
    organization: User
    slug: str
    members: list[User] = field(default_factory=list)

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("T", self.id)


def node_id(prefix: str, number: int) -> str:
    """Return a GraphQL id in GitHub's form, the same for the same object every time."""
    return f"{prefix}_{base64.urlsafe_b64encode(number.to_bytes(6, 'big')).decode().rstrip('=')}"
