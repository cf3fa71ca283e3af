"""The keys below `stale_reviews`: when reviewers are reminded of pull requests on which nobody does anything."""

from __future__ import annotations

from pydantic import Field

from bot.config.keys import Keys
from bot.config.types import Interval, Shared, WholeNumber, seconds
from bot.core.schedule import Every


class StaleReviews(Keys):
    """Reviewers are reminded of pull requests on which no person has done anything for a while."""

    after: Shared[Interval] = Field(
        default="7d",
        description=(
            "How long no person has to have done anything on a pull request until its reviewers are reminded, and "
            "from one reminder to the next."
        ),
        examples=["7d"],
    )
    every: Interval = Field(
        default="15m", description="How often it is looked who is to be reminded.", examples=["15m"]
    )
    limit: WholeNumber = Field(
        default=5,
        description=(
            "Of how many pull requests people are reminded at one time, at most: first of those that have waited "
            "longest. Where hundreds wait, begin with `every: 1d`."
        ),
        examples=[5],
    )

    @property
    def schedule(self) -> Every:
        """Return when stale reviews are scanned."""
        return Every(int(seconds(self.every)))
