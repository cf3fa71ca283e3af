"""What people write in issues and pull requests: comments, reviews, reactions."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Literal

from .users import User, node_id

if TYPE_CHECKING:
    from .apps import App
    from .issues import Issue
    from .pulls import PullRequest

ReviewState = Literal["APPROVED", "CHANGES_REQUESTED", "COMMENTED", "DISMISSED", "PENDING"]
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


@dataclass(eq=False)
class Comment:
    """A comment in the conversation of an issue or pull request."""

    id: int
    issue: Issue
    user: User
    body: str
    created_at: datetime
    updated_at: datetime
    app: App | None = None
    reactions: list[Reaction] = field(default_factory=list)

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("IC", self.id)

    def __repr__(self) -> str:
        return f"<comment {self.id} by {self.user}: {self.body!r}>"


@dataclass(eq=False)
class Review:
    """A review; `commit_id` is the head that was looked at."""

    id: int
    pull: PullRequest
    user: User
    body: str
    state: ReviewState
    commit_id: str
    submitted_at: datetime
    reactions: list[Reaction] = field(default_factory=list)

    @property
    def node_id(self) -> str:
        """Return the GraphQL id; reviews take reactions through GraphQL only."""
        return node_id("PRR", self.id)


@dataclass(eq=False)
class ReviewComment:
    """A comment on a line of the diff."""

    id: int
    pull: PullRequest
    user: User
    body: str
    path: str
    line: int
    commit_id: str
    created_at: datetime
    updated_at: datetime
    review: Review | None = None
    in_reply_to: int | None = None
    reactions: list[Reaction] = field(default_factory=list)

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("PRRC", self.id)


Reactable = "Issue | Comment | Review | ReviewComment"
