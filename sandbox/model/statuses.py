"""Commit statuses."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sandbox.users import User, node_id


@dataclass(eq=False)
class CommitStatus:
    """A commit status."""

    id: int
    sha: str
    context: str
    state: str
    description: str | None
    target_url: str | None
    creator: User
    created_at: datetime

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("SC", self.id)
