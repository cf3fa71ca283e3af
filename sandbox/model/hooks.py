"""Webhooks of repositories."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(eq=False)
class Hook:
    """A webhook of one repository, independent of the Apps' webhooks."""

    id: int
    url: str
    secret: str
    events: tuple[str, ...]
