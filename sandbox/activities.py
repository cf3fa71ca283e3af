"""What was done to the refs of a repository, as its page *Activity* lists it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from .users import User


@dataclass(frozen=True)
class Activity:
    """A ref that somebody moved; `kind` is GitHub's `activity_type`."""

    id: int
    by: User
    ref: str
    before: str
    after: str
    kind: str
    at: datetime
