"""GitHub's operations, one module per family; importing a module registers its routes."""

from __future__ import annotations

from sandbox.routing import ROUTES, Route

from . import (
    actions,
    apps,
    checks,
    commits,
    contents,
    dispatches,
    issues,
    people,
    pulls,
    reactions,
    refs,
    repositories,
    reviews,
    statuses,
)  # fmt: skip

FAMILIES = (
    actions, apps, checks, commits, contents, dispatches, issues, people, pulls, reactions, refs, repositories, reviews,
    statuses,
)  # fmt: skip


def all_routes() -> list[Route]:
    """Return every route of every family."""
    return list(ROUTES)
