"""A town whose nightly branch moves, by a clock that a test puts forward."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from bot.config import parse_config
from bot.engine.journal import DeliveryRecord
from bot.schedule import Daily
from bot.serve import Bot, running
from bot.timers import ONCE_MORE, TIMER_DUE
from sandbox.issues import Issue
from tests.conversations.lab import Moments
from tests.conversations.town import BOT, REPOSITORY, UNHURRIED, Town, town

CONFIG = """
repositories:
  octocat/compiler:
    nightly: {branch: %s, require: [%s]}
"""
SCHEDULE = Daily("21:00", "America/Los_Angeles")
API = f"/api/v1/repos/{REPOSITORY}"


@dataclass
class NightTown:
    """A town whose nightly branch moves when a test lets a night pass."""

    town: Town
    time: Moments
    branch: str
    config: str

    async def night(self) -> None:
        """Let the time pass until the timer is due, and wait until the bot has done what comes of it."""
        await self.come_to_the_moment()
        await self.town.quiet()

    async def come_to_the_moment(self) -> None:
        """Let the time pass until the timer is due, and let the bot notice."""
        self.time.ahead = SCHEDULE.next_due(self.time()) + 1 - time.time()
        await self.town.bot.timers.tick()

    async def hour(self) -> None:
        """Let an hour pass, and wait until the bot has done what comes of it."""
        self.time.ahead += ONCE_MORE
        await self.town.bot.timers.tick()
        await self.town.quiet()

    def push(self, message: str = "Improve it") -> str:
        """Push a commit to main; returns its SHA."""
        return self.town.repo.push("main", by="hubot", message=message).sha

    @property
    def head(self) -> str | None:
        """Return where the branch is."""
        return self.town.repo.refs.get(f"refs/heads/{self.branch}")

    async def told(self) -> dict[str, Any]:
        """Return what the API tells of the branch."""
        status, _, answer = await self.town.ask(f"{API}/nightly")
        assert status == 200, answer
        return dict(answer)

    async def verdicts(self) -> list[tuple[str, str, list[str]]]:
        """Return what the API tells of the commits looked at: the title, the verdict, and what was in the way."""
        listed = (await self.told())["why_not_newer"]
        return [
            (one["title"], one["verdict"], [f"{b['name']} {b['state']}" for b in one["blockers"]]) for one in listed
        ]

    @property
    def issues(self) -> list[Issue]:
        """Return the issues that the bot has opened."""
        return [issue for issue in self.town.repo.issues.values() if issue.user.login == BOT]

    async def runs(self) -> list[DeliveryRecord]:
        """Return the timer's runs, the newest first."""
        return [one for one in await self.town.bot.engine.journal.recent(limit=500) if one.event == TIMER_DUE]

    def writes(self) -> list[str]:
        """Return what the bot has written to the branch, in order."""
        return [f"{r.method} {r.status}" for r in self.town.github.requests.writes if "/git/refs" in r.path]


@asynccontextmanager
async def replica_of(place: NightTown) -> AsyncIterator[Bot]:
    """Run another bot on the same database."""
    config = parse_config(place.config.encode(), "app.yaml")
    async with running(config, place.town.bot.settings, None, UNHURRIED, place.time) as other:
        yield other.bot


@asynccontextmanager
async def night_town(
    database_url: str, *, require: Sequence[str] = (), branch: str = "nightly", **options: Any
) -> AsyncIterator[NightTown]:
    """Start a town where the timer is known and not due yet."""
    config = CONFIG % (branch, ", ".join(f'"{pattern}"' for pattern in require))
    moments = Moments()
    async with town(database_url, config=config, now=moments, **options) as place:
        await place.bot.timers.tick()
        await place.quiet()
        yield NightTown(place, moments, branch, config)
