"""The key `stale_reviews`: when reviewers are reminded of pull requests on which nobody does anything."""

from __future__ import annotations

from pydantic import Field

from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey
from bot.config.types import Interval, Shared, WholeNumber, seconds
from bot.core.schedule import FixedInterval


class StaleReviews(Keys):
    """The bot reminds reviewers of pull requests on which no person has done anything for a while."""

    after: Shared[Interval] = Field(
        default="7d",
        description="Time without activity by a person until the first reminder, and between reminders.",
        examples=["7d"],
    )
    every: Interval = Field(default="15m", description="How often to check for stale reviews.", examples=["15m"])
    limit: WholeNumber = Field(
        default=5,
        description=(
            "How many pull requests to send reminders on at once, at most; the oldest go first. With hundreds of "
            "stale pull requests, start with `every: 1d`."
        ),
        examples=[5],
    )

    @property
    def schedule(self) -> FixedInterval:
        """Return when stale reviews are scanned."""
        return FixedInterval(int(seconds(self.every)))


STALE_REVIEWS = ConfigKey(
    "stale_reviews",
    StaleReviews,
    description="Reminds reviewers of pull requests without activity.",
    example={"after": "7d", "every": "15m", "limit": 5},
    position=160,
    timer="stale-reviews",
)
KEYS = (STALE_REVIEWS,)
