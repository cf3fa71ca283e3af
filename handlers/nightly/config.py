"""The key `nightly`: which branch labs test, where its commits come from, and when it moves."""

from __future__ import annotations

from pydantic import Field

from bot.config.repository_keys import ConfigKey
from bot.config.types import BranchName, Pattern, Shared, TimeOfDay, TimeZone
from bot.core.schedule import Daily
from handlers.tracking_branches.keys import TrackingBranch

STATUS = "nightly"
"""Context of the commit status on the commit that labs test."""


class Nightly(TrackingBranch):
    """A branch that once a day moves to the newest commit that is fit to be tested; all labs test that one."""

    branch: BranchName = Field(
        default="nightly",
        description="The branch to move. The bot creates it if it is missing, and moves it only forward.",
        examples=["nightly"],
    )
    at: TimeOfDay = Field(default="21:00", description="Time of the daily move.", examples=["21:00"])
    timezone: TimeZone = Field(
        default="America/Los_Angeles",
        description="Time zone of `at`, with daylight saving time.",
        examples=["America/Los_Angeles"],
    )
    require: Shared[tuple[Pattern, ...]] = Field(
        default=(),
        description=(
            "What must be green on a commit: status contexts and check run names. Each pattern must match "
            "at least one, and all matches must be green. An empty list: the newest commit."
        ),
        examples=[["*/branch"]],
    )

    @property
    def schedule(self) -> Daily:
        """Return when the branch moves."""
        return Daily(self.at, self.timezone)


NIGHTLY = ConfigKey(
    "nightly",
    Nightly,
    description="Moves a branch once a day, so that all labs test one commit.",
    example={"from": "main", "at": "21:00", "require": ["*/branch"]},
    position=60,
    timer="nightly",
    contexts=lambda _: (STATUS,),
    branches=lambda nightly: (nightly.branch,),
    tested_branches=lambda nightly: (nightly.branch,),
    requires="require",
)
KEYS = (NIGHTLY,)
