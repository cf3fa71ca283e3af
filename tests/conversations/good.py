"""A town with a last good branch, and a clock that a test advances."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cached_property
from typing import Any

import aiohttp

from bot.core.schedule import FixedInterval
from sandbox import App, Request
from tests.conversations.branches import BranchTown
from tests.conversations.lab import Moments
from tests.conversations.town import town

CONFIG = """
repositories:
  octocat/compiler:
    last_good: {branch: last-successful, require: [%s]}
"""
QUIET = "    slow_tests: false\n"
"""Without slow tests, the bot sets no status of its own on a commit."""
SCHEDULE = FixedInterval(900).for_timer("octocat/compiler last-good")
BRANCH = "last-successful"


class GoodTown(BranchTown):
    """A town whose last good branch moves when a test lets a quarter of an hour pass."""

    PATH = "last-good"

    async def scan(self) -> None:
        """Advance the time to the next scheduled scan, and wait until the bot has finished it."""
        await self.advance_to(SCHEDULE)
        await self.town.quiet()

    def checked(self, message: str, checks: Mapping[str, str | None]) -> str:
        """Push a commit with checks of another App: name → conclusion, None if it still runs; return the SHA."""
        sha = self.push(message)
        self.check(sha, checks)
        return sha

    def check(self, sha: str, checks: Mapping[str, str | None]) -> None:
        """Let another App check a commit, or check it again."""
        for name, conclusion in checks.items():
            run = self.town.repo.add_check_run(self.ci, sha, name, by="hubot", status="in_progress")
            if conclusion is not None:
                run.change(self.ci.bot, conclusion=conclusion)

    @cached_property
    def ci(self) -> App:
        """Return an App that is neither ours nor GitHub Actions."""
        return self.town.github.create_app("example-ci", events=())

    async def asked(self) -> list[Request]:
        """Run a scan, and return its requests."""
        self.town.github.requests.clear()
        await self.scan()
        return self.town.github.requests.of_installation

    async def measured(self) -> dict[str, float]:
        """Return the metrics of the branch: each line's name and labels, with its value."""
        async with aiohttp.ClientSession() as session, session.get(f"{self.town.url}/metrics") as response:
            lines = re.findall(r"^nightjar_last_good_(\S+) (\S+)$", await response.text(), re.MULTILINE)
        return {name: float(value) for name, value in lines}


def routes(requests: Sequence[Request]) -> Counter[str]:
    """Return how many requests each route got, without the repository's name."""
    return Counter(f"{request.method} {request.route.removeprefix('/repos/{owner}/{repo}')}" for request in requests)


@asynccontextmanager
async def good_town(
    database_url: str, *, require: Sequence[str], also: str = QUIET, **options: Any
) -> AsyncIterator[GoodTown]:
    """Start a town whose timer exists but is not scheduled yet; `also` adds keys of the repository."""
    config = CONFIG % ", ".join(f'"{pattern}"' for pattern in require) + also
    moments = Moments()
    async with town(database_url, config=config, now=moments, **options) as place:
        await place.bot.timers.tick()
        await place.quiet()
        yield GoodTown(place, moments, BRANCH, config)
