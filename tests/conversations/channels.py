"""Chat channels in which a conversation's bot tells news."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

from sandbox.channels import DiscordSandbox, SlackSandbox


@dataclass(frozen=True)
class Channels:
    """A Discord and a Slack: `channels.discord.said` are the messages there, as people read them."""

    discord: DiscordSandbox
    slack: SlackSandbox

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the variables by which the bot comes here: `town(url, environment=channels.environment)`."""
        return {"DISCORD_WEBHOOK_URL": self.discord.url, "SLACK_WEBHOOK_URL": self.slack.url}


@asynccontextmanager
async def channels() -> AsyncIterator[Channels]:
    """Open both; in the end the bot has posted nothing that would be refused for what it says."""
    opened = Channels(DiscordSandbox(), SlackSandbox())
    async with opened.discord.serve(), opened.slack.serve():
        yield opened
    assert opened.discord.refused == []
    assert opened.slack.refused == []
