"""Whether a push to the default branch may have changed a file, by its payload alone."""

from __future__ import annotations

from bot.core.events import Payload

BRANCH_PREFIX = "refs/heads/"
MOST_COMMITS = 20
"""Commits of a push; from this number on, some may not be listed. github.com lists 2,048, old Enterprise Servers 20."""
MOST_NAMES = 3_000
"""The most names of files that GitHub lists for one commit of a push
(https://docs.github.com/en/webhooks/webhook-events-and-payloads#push)."""


def may_change_on_default(payload: Payload, path: str) -> bool:
    """Say whether a push moved the default branch, and may have changed a file there."""
    on_default = payload.text("ref") == BRANCH_PREFIX + payload.text("repository", "default_branch")
    return on_default and not payload.flag("deleted") and may_change(payload, path)


def may_change(payload: Payload, path: str) -> bool:
    """Say whether a push may have changed a file: its payload lists the file, or may not list all files."""
    # A forced push also removes commits, and a new branch brings old ones; the payload may list neither.
    if payload.flag("created") or payload.flag("forced") or not payload.has("commits"):
        return True
    commits = [
        [name for kind in ("added", "modified", "removed") for name in commit.raw.get(kind) or ()]
        for commit in payload.items("commits")
    ]
    return len(commits) >= MOST_COMMITS or any(path in names or len(names) >= MOST_NAMES for names in commits)
