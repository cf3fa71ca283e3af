"""The keys below `last_good`: the branch that is at the newest commit on which everything required is green."""

from __future__ import annotations

from pydantic import Field

from bot.config.nightly import TrackingBranch
from bot.config.types import BranchName, Interval, Pattern, Shared, seconds
from bot.core.schedule import Every


class LastGood(TrackingBranch):
    """A branch that follows the newest commit on which everything required is green, for people to start from."""

    branch: BranchName = Field(
        default="last-successful",
        description="The branch that is moved, made if it is not there. It only ever moves forward.",
        examples=["last-successful"],
    )
    every: Interval = Field(default="15m", description="How often it is looked for a newer commit.", examples=["15m"])
    require: Shared[tuple[Pattern, ...]] = Field(
        min_length=1,
        description=(
            "What must be green on a commit: contexts of commit statuses and names of check runs. Each pattern must "
            "match at least one, and all that match must be green; success, neutral and skipped are. Name each that "
            "matters: a pattern for several is content as soon as the first of them is green."
        ),
        examples=[["*/branch"]],
    )

    @property
    def schedule(self) -> Every:
        """Return when it is looked for a newer commit."""
        return Every(int(seconds(self.every)))
