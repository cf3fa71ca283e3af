"""A town with pending reviews, where people's actions can lie days in the past."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Any

from bot.core.schedule import FixedInterval
from sandbox import PullRequest
from tests.conversations.lab import Moments
from tests.conversations.town import BOT, Town, town

CONFIG = """
repositories:
  octocat/compiler:
    slow_tests: false
    stale_reviews: {after: 7d, every: 15m, limit: 5}
"""
EVERY = FixedInterval(900).for_timer("octocat/compiler stale-reviews")
DAY = 86_400.0
MORE = 0.05
"""A part of a day, so that full days have passed on the bot's and on GitHub's clock, even if a test takes long."""


@dataclass
class StaleTown:
    """A town whose bot scans for stale reviews when a test advances the clock by a quarter of an hour."""

    town: Town
    time: Moments

    @contextmanager
    def days_ago(self, days: float) -> Iterator[None]:
        """Date the actions in the block a little more than so many days before the bot's current time."""
        apart = days + MORE - self.time.ahead / DAY
        self.town.github.clock.advance(days=-apart)
        yield
        self.town.github.clock.advance(days=apart)

    def opened(self, days: float, *reviewers: str, by: str = "octocat", **options: Any) -> PullRequest:
        """Open a pull request so many days ago, and request reviews."""
        with self.days_ago(days):
            pull = self.town.repo.open_pull_request(by, **options)
            if reviewers:
                pull.request_review(by, *reviewers)
        return pull

    async def scan(self, days: float = 0) -> None:
        """Advance the clock by some days and then to the next scan; wait until the bot has finished it."""
        next_scan = EVERY.next_time(self.time() + days * DAY) + 1
        self.time.ahead += next_scan - self.time()
        await self.town.bot.timers.tick()
        await self.town.quiet()

    def reminders(self, pull: PullRequest) -> list[str]:
        """Return the texts of the reminders, without their markers."""
        return [comment.body.partition("\n")[2] for comment in pull.comments_by(BOT)]


@asynccontextmanager
async def stale_town(database_url: str, **options: Any) -> AsyncIterator[StaleTown]:
    """Start a town whose timer exists but is not scheduled yet."""
    moments = Moments()
    async with town(database_url, **{"config": CONFIG, "now": moments, **options}) as place:
        await place.bot.timers.tick()
        await place.quiet()
        yield StaleTown(place, moments)
