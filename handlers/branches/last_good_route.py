"""`GET /api/v1/repos/{owner}/{repo}/last-good`: the newest commit on which everything required is green."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel, ConfigDict, Field

from bot.web.openapi import Operation
from handlers.branches import routes as tracking


class LagBehind(BaseModel):
    """How far the branch is behind the one that its commits come from, by the last scan, as of now."""

    model_config = ConfigDict(extra="forbid")

    commits: int = Field(description="Commits of the source branch that it lacks.")
    hours: float | None = Field(description="Age of the oldest of these commits, by its committer's date.")
    since: datetime | None = Field(description="The committer's date of that commit; null if the branch lacks none.")


class SoleBlocker(BaseModel):
    """What alone is red, or missing, on commits where everything else that is required is green."""

    model_config = ConfigDict(extra="forbid")

    name: str
    commits: int


class LastGoodBranch(tracking.TrackedBranch):
    """The state of the last good branch. Unknown values are null."""

    require: list[str] = Field(description="Patterns of the contexts and check runs that must be green.")
    lag: LagBehind | None
    blockers: list[SoleBlocker] = Field(description="The checks that block most commits first, at most ten.")


def operation(read: tracking.ReadBranch) -> Operation:
    """Return the route."""
    summary = "The newest commit on which everything required is green, how far behind it is, and what is in the way"
    return tracking.operation("last-good", summary, LastGoodBranch, read)
