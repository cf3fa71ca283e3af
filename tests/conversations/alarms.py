"""A town whose main branch is watched, with all the channels that receive its alarms."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from bot.engine.jobs.journal import DeliveryRecord
from handlers.main_failures.effects import SCAN_EVENT
from sandbox.model.issues import Issue
from tests.conversations.channels import Channels, channels
from tests.conversations.lab import Moments
from tests.conversations.town import BOT, Town, town

CONFIG = """
repositories:
  octocat/compiler:
    slow_tests: false
    main_failures: {branches: [%s], contexts: ["*/branch", lint], to: [issue, discord, slack], wait: 1s%s}
"""
HOUR = 3600.0


@dataclass
class AlarmTown:
    """A town with alarms about its main branch."""

    town: Town
    channels: Channels
    time: Moments
    config: str

    def push(self, message: str, **contexts: str) -> str:
        """Push a commit to main and report on it; `cpu="failure"` is the status `cpu/branch`. Returns its SHA."""
        sha = self.town.repo.push("main", by="hubot", message=message).sha
        self.report(sha, **contexts)
        return sha

    def report(self, sha: str, **contexts: str) -> None:
        """Report on a commit."""
        for name, state in contexts.items():
            url = f"https://ci.example.org/{name}"
            self.town.repo.set_status("hubot", sha, f"{name}/branch", state, f"{name}: {state}", url)

    async def sweep(self, hours: int = 1) -> None:
        """Let an hour pass, or more, and wait until the bot has finished."""
        self.time.ahead += hours * HOUR
        await self.town.bot.timers.tick()
        await self.town.quiet()

    async def news(self) -> list[str]:
        """Wait until all is quiet, then return the lines posted to the chats and clear them there."""
        await self.town.quiet()
        discord_messages, slack_messages = list(self.channels.discord.said), list(self.channels.slack.said)
        assert discord_messages == slack_messages
        self.channels.discord.messages.clear()
        self.channels.slack.messages.clear()
        return discord_messages

    @property
    def issues(self) -> list[Issue]:
        """Return the issues opened by the bot."""
        return [issue for issue in self.town.repo.issues.values() if issue.user.login == BOT]

    async def scans(self) -> list[DeliveryRecord]:
        """Return the bot's scans, newest first."""
        return [
            record for record in await self.town.bot.engine.journal.recent(limit=500) if record.event == SCAN_EVENT.name
        ]


@asynccontextmanager
async def alarm_town(
    database_url: str, branches: str = "main", also: str = "", fix_within: str = ""
) -> AsyncIterator[AlarmTown]:
    """Start a town where nothing fails; its timer exists but is not scheduled yet. `also` adds keys."""
    deadline = f", fix_within: {fix_within}" if fix_within else ""
    config, moments = CONFIG % (branches, deadline) + also, Moments()
    async with (
        channels() as chats,
        town(database_url, config=config, environment=chats.environment, now=moments) as place,
    ):
        await place.bot.timers.tick()
        await place.quiet()
        yield AlarmTown(place, chats, moments, config)
