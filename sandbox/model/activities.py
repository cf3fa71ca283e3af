"""Moves of the refs of a repository, as its page *Activity* lists them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sandbox.git import NO_COMMIT, GitStore
from sandbox.users import User


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


def kind_of_move(git: GitStore, before: str, after: str) -> str:
    """Return GitHub's `activity_type` for a branch that was moved, created or deleted."""
    if before == NO_COMMIT:
        return "branch_creation"
    if after == NO_COMMIT:
        return "branch_deletion"
    return "push" if git.contains(after, before) else "force_push"
