"""Chat channels in which a conversation's bot posts news."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from sandbox.channels import DiscordSandbox, SlackSandbox
from sandbox.model.issues import Issue
from tests.bucket import World
from tests.conversations.lab import LabTown, lab_town
from tests.conversations.town import BOT


@dataclass(frozen=True)
class Channels:
    """A Discord and a Slack: `channels.discord.said` are the messages there, as people read them."""

    discord: DiscordSandbox
    slack: SlackSandbox

    @property
    def environment(self) -> Mapping[str, str]:
        """Return the environment variables that lead the bot here: `town(url, environment=channels.environment)`."""
        return {"DISCORD_WEBHOOK_URL": self.discord.url, "SLACK_WEBHOOK_URL": self.slack.url}


@asynccontextmanager
async def channels() -> AsyncIterator[Channels]:
    """Open both channels; at the end, check that the bot posted nothing that a real channel would refuse."""
    opened = Channels(DiscordSandbox(), SlackSandbox())
    async with opened.discord.serve(), opened.slack.serve():
        yield opened
    assert opened.discord.refused == []
    assert opened.slack.refused == []


@dataclass
class LabNews:
    """Labs in a town, and the places where the bot reports regressions."""

    place: LabTown
    channels: Channels

    @property
    def titles(self) -> list[str]:
        """Return the first lines of all messages in the channel."""
        return [message.splitlines()[0] for message in self.channels.discord.said]

    @property
    def issues(self) -> list[Issue]:
        """Return the issues opened by the bot."""
        return [issue for issue in self.place.town.repo.issues.values() if issue.user.login == BOT]


@asynccontextmanager
async def town_with_channels(
    tmp_path: Path,
    aws_world: World,
    more_labs: str,
    features: str = "regressions: {to: [discord, issue]}",
    targets: str = "[hexagon-v73, adreno]",
) -> AsyncIterator[tuple[LabTown, Channels]]:
    """Start a town whose bot posts regressions to Discord and to issues."""
    async with (
        channels() as opened,
        lab_town(
            f"sqlite:///{tmp_path}/nightjar.db",
            aws_world,
            features=features,
            more_labs=more_labs,
            targets=targets,
            environment=opened.environment,
        ) as place,
    ):
        yield place, opened
