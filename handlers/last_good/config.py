"""The key `last_good`: a branch at the newest commit on which everything required is green."""

from __future__ import annotations

from pydantic import Field

from bot.config.repository_keys import ConfigKey
from bot.config.types import BranchName, Interval, Pattern, Shared, seconds
from bot.core.schedule import FixedInterval
from handlers.tracking_branches.keys import TrackingBranch


class LastGood(TrackingBranch):
    """A branch that follows the newest commit on which everything required is green, for people to start from."""

    branch: BranchName = Field(
        default="last-successful",
        description="The branch to move. The bot creates it if it is missing, and moves it only forward.",
        examples=["last-successful"],
    )
    every: Interval = Field(default="15m", description="How often to scan for a newer commit.", examples=["15m"])
    require: Shared[tuple[Pattern, ...]] = Field(
        min_length=1,
        description=(
            "What must be green on a commit: status contexts and check run names. Each pattern must match "
            "at least one, and all matches must be `success`, `neutral` or `skipped`. List each name that "
            "matters: while only one match of a pattern has been reported, it alone decides."
        ),
        examples=[["*/branch"]],
    )

    @property
    def schedule(self) -> FixedInterval:
        """Return when the bot scans for a newer commit."""
        return FixedInterval(int(seconds(self.every)))


LAST_GOOD = ConfigKey(
    "last_good",
    LastGood,
    description="Moves a branch to the newest commit on which everything required is green.",
    example={"branch": "last-successful", "every": "15m", "require": ["*/branch"]},
    position=70,
    timer="last-good",
    branches=lambda last_good: (last_good.branch,),
    requires="require",
)
KEYS = (LAST_GOOD,)
