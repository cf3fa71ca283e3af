"""A town with a nightly branch, and a clock that a test advances."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from bot.core.schedule import Daily
from bot.engine.sweeps import HOUR
from tests.bucket import World
from tests.conversations.branches import BranchTown
from tests.conversations.lab import Moments
from tests.conversations.town import town

CONFIG = """
repositories:
  octocat/compiler:
    nightly: {branch: %s, require: [%s]}
"""
LABS = """\
    results: {bucket: %s, poll: 55s, labs: {example-lab: {targets: [hexagon-v73]}}}
"""
SCHEDULE = Daily("21:00", "America/Los_Angeles")


class NightlyTown(BranchTown):
    """A town whose nightly branch moves when a test advances the clock."""

    PATH = "nightly"

    async def nightly_run(self) -> None:
        """Advance the time to the next nightly run, and wait until the bot has finished it."""
        await self.reach_scheduled_time()
        await self.town.quiet()

    async def reach_scheduled_time(self) -> None:
        """Advance the time to the next nightly run, and let the bot notice."""
        await self.advance_to(SCHEDULE)

    async def hour(self) -> None:
        """Let an hour pass, and wait until the bot has finished."""
        self.time.ahead += HOUR
        await self.town.bot.timers.tick()
        await self.town.quiet()


@asynccontextmanager
async def nightly_town(
    database_url: str,
    *,
    require: Sequence[str] = (),
    branch: str = "nightly",
    bucket: World | None = None,
    also: str = "",
    **options: Any,
) -> AsyncIterator[NightlyTown]:
    """Start a town whose timer exists but is not scheduled yet; a lab uploads to the `bucket`, if there is one.

    `also` is added to app.yaml.
    """
    config = CONFIG % (branch, ", ".join(f'"{pattern}"' for pattern in require))
    config += (LABS % bucket.name if bucket is not None else "") + also
    moments = Moments()
    async with town(database_url, config=config, now=moments, **options) as place:
        await place.bot.timers.tick()
        await place.quiet()
        yield NightlyTown(place, moments, branch, config)
