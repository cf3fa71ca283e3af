"""Labels of repositories."""

from __future__ import annotations

from sandbox.users import node_id


class Label:
    """A label of a repository."""

    def __init__(self, number: int, name: str) -> None:
        self.id = number
        self.name = name
        self.color = "ededed"

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("LA", self.id)
