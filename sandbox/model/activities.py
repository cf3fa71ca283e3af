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
    actor: User
    ref: str
    old_sha: str
    new_sha: str
    kind: str
    moment: datetime


def kind_of_move(git: GitStore, old_sha: str, new_sha: str) -> str:
    """Return GitHub's `activity_type` for a branch that was moved, created or deleted."""
    if old_sha == NO_COMMIT:
        return "branch_creation"
    if new_sha == NO_COMMIT:
        return "branch_deletion"
    return "push" if git.contains(new_sha, old_sha) else "force_push"
