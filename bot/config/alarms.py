"""The keys of what people are told when something breaks: where, about what, and how it is grouped."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from bot.config.keys import Keys
from bot.config.types import BranchName, Duration, Interval, Pattern, Shared, seconds
from bot.core.schedule import Every

Place = Literal["discord", "slack", "issue"]
"""Where people are told: a Discord or Slack channel by its webhook, or an issue in the repository."""

MOST_WATCHED = 10
"""Branches: a look at one is twenty requests and more, and repositories may name them, whose operator is another."""

TO = (
    "Where people are told: `discord` and `slack`, channels whose webhooks are DISCORD_WEBHOOK_URL and "
    "SLACK_WEBHOOK_URL, and `issue`, an issue in the repository that is closed by itself when all is well again."
)


class MainFailures(Keys):
    """Alarms: a status or check that begins to fail on a branch, and its recovery, are told once."""

    branches: Shared[tuple[BranchName, ...]] = Field(
        default=("main",),
        min_length=1,
        max_length=MOST_WATCHED,
        description=f"The branches that are watched, {MOST_WATCHED} at most.",
        examples=[["main"]],
    )
    contexts: Shared[tuple[Pattern, ...]] = Field(
        default=("*",),
        min_length=1,
        description="Which contexts of commit statuses and names of check runs are watched.",
        examples=[["*/branch"]],
    )
    to: tuple[Place, ...] = Field(default=("issue",), min_length=1, description=TO, examples=[["issue", "discord"]])
    wait: Duration = Field(
        default="3m",
        description="How long to wait after a failure for others, so that they are told together.",
        examples=["3m"],
    )
    every: Interval = Field(
        default="1h", description="How often it is looked for what no event has told of.", examples=["1h"]
    )

    @property
    def schedule(self) -> Every:
        """Return when it is looked for what no event has told of."""
        return Every(int(seconds(self.every)))


class Regressions(Keys):
    """Confirmed regressions of hardware targets on the nightly branch: one message for each lab, target and night."""

    to: tuple[Place, ...] = Field(default=("issue",), min_length=1, description=TO, examples=[["issue", "discord"]])
