"""Reactions to what people write."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from sandbox.users import User, node_id

REACTIONS = {
    "+1": "👍",
    "-1": "👎",
    "laugh": "😄",
    "confused": "😕",
    "heart": "❤️",
    "hooray": "🎉",
    "rocket": "🚀",
    "eyes": "👀",
}


@dataclass(eq=False)
class Reaction:
    """One emoji of one person."""

    id: int
    user: User
    content: str
    created_at: datetime

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("REA", self.id)


class Reactable(Protocol):
    """A comment or a review: what people react to besides the text of an issue."""

    reactions: list[Reaction]
