"""`GET /api/v1/repos/{owner}/{repo}/nightly`: the commit that labs test, and why it is not a newer one."""

from __future__ import annotations

from bot.web.openapi import Operation
from handlers.branches import routes as tracking


class NightlyBranch(tracking.TrackedBranch):
    """Where the branch is that labs test: `sha` is the commit to test. What is not known (yet) is null."""


def operation(read: tracking.ReadBranch) -> Operation:
    """Return the route."""
    summary = "The commit that all labs test, and why it is not a newer one"
    return tracking.operation("nightly", summary, NightlyBranch, read)
