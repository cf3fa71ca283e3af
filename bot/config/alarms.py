"""The keys of `main_failures` and `regressions`: what is watched, and which channels get the messages."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bot.config.keys import Keys
from bot.config.types import BranchName, Duration, Interval, Pattern, Shared, seconds
from bot.core.schedule import FixedInterval

Place = Literal["discord", "slack", "issue"]
"""A channel for messages: Discord or Slack by webhook, or an issue in the repository."""

MOST_WATCHED = 10
"""Most watched branches: a scan takes over twenty requests, and repositories may set this key themselves."""

TO = (
    "Channels for messages: `discord` and `slack`, whose webhooks are DISCORD_WEBHOOK_URL and SLACK_WEBHOOK_URL, and "
    "`issue`, an issue in the repository that the bot closes after recovery."
)


class MainFailures(Keys):
    """Messages about statuses and checks that begin to fail on a branch, and about their recovery."""

    branches: Shared[tuple[BranchName, ...]] = Field(
        default=("main",),
        min_length=1,
        max_length=MOST_WATCHED,
        description=f"The watched branches, at most {MOST_WATCHED}.",
        examples=[["main"]],
    )
    contexts: Shared[tuple[Pattern, ...]] = Field(
        default=("*",),
        min_length=1,
        description="Status contexts and check run names to watch. A workflow that fails before its first job, as with "
        "an invalid workflow file, has neither, so it is not reported.",
        examples=[["*/branch"]],
    )
    to: tuple[Place, ...] = Field(default=("issue",), min_length=1, description=TO, examples=[["issue", "discord"]])
    wait: Duration = Field(
        default="3m",
        description="How long to wait after a failure, so that further ones are reported in the same message.",
        examples=["3m"],
    )
    every: Interval = Field(
        default="1h", description="How often to scan the branches in case an event was lost.", examples=["1h"]
    )

    @property
    def schedule(self) -> FixedInterval:
        """Return when the branches are scanned."""
        return FixedInterval(int(seconds(self.every)))


class Regressions(Keys):
    """Confirmed regressions on the nightly branch: one message for all targets that fail in the same tests."""

    to: tuple[Place, ...] = Field(default=("issue",), min_length=1, description=TO, examples=[["issue", "discord"]])
    wait: Duration = Field(
        default="30m",
        description="How long news of a target waits for other targets that may fail in the same tests.",
        examples=["30m"],
    )
