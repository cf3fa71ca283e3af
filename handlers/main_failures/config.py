"""The key `main_failures`: which branches and checks are watched, and which channels get the messages."""

from __future__ import annotations

from pydantic import Field

from bot.config.keys import Keys
from bot.config.places import TO, Place
from bot.config.repository_keys import ConfigKey
from bot.config.types import BranchName, Duration, Interval, Pattern, Shared, seconds
from bot.core.schedule import FixedInterval

MOST_WATCHED = 10
"""Most watched branches: a scan takes over twenty requests, and repositories may set this key themselves."""


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

    fix_within: Duration | None = Field(
        default=None,
        description="How long a check may fail. If it fails longer, the bot repeats the message, once for each "
        "failure.",
        examples=["1d"],
    )

    @property
    def schedule(self) -> FixedInterval:
        """Return when the branches are scanned."""
        return FixedInterval(int(seconds(self.every)))


MAIN_FAILURES = ConfigKey(
    "main_failures",
    MainFailures,
    description="Reports checks that begin to fail on a branch, and their recovery.",
    example={"branches": ["main"], "to": ["discord"]},
    position=80,
    timer="main-failures",
    places=lambda main_failures: main_failures.to,
)
KEYS = (MAIN_FAILURES,)
