"""The key `regressions`: which channels get messages about regressions."""

from __future__ import annotations

from typing import Literal

from pydantic import Field
from pydantic_core import PydanticCustomError

from bot.config.keys import Keys
from bot.config.places import TO, Place
from bot.config.repository_keys import ConfigKey, ValidatedKeys
from bot.config.texts import NEEDS_RESULTS
from bot.config.types import LACKING, Duration
from bot.results.settings.quarantine import TargetOfLab
from bot.results.settings.renames import TestPattern
from handlers.results.config import LAB_RESULTS, check_targets

MAX_SUBSCRIPTIONS, MAX_PATHS = 50, 100
"""Entries that the lists may have."""


class Subscription(Keys):
    """Places that get messages about some targets and tests only."""

    to: tuple[Place, ...] = Field(
        min_length=1,
        description=(
            "Channels, as for `regressions.to`. A channel that is there too gets each message once. With `issue`, the "
            "bot opens issues about these targets and tests only."
        ),
        examples=[["slack"]],
    )
    targets: tuple[TargetOfLab, ...] = Field(
        default=(),
        max_length=MAX_PATHS,
        description="Only these targets. Default: all of them.",
        examples=[["example-lab/hexagon-v73"]],
    )
    paths: tuple[TestPattern, ...] = Field(
        default=(),
        max_length=MAX_PATHS,
        description="Only tests with these IDs, or whose IDs begin so, if a star follows. Default: all tests.",
        examples=[["tests/python/relay/*"]],
    )


class Regressions(Keys):
    """Confirmed regressions on the nightly branch: one message for all targets that fail in the same tests."""

    to: tuple[Place, ...] = Field(default=("issue",), min_length=1, description=TO, examples=[["issue", "discord"]])
    wait: Duration = Field(
        default="30m",
        description="How long news of a target waits for other targets that may fail in the same tests.",
        examples=["30m"],
    )
    subscriptions: tuple[Subscription, ...] = Field(
        default=(),
        max_length=MAX_SUBSCRIPTIONS,
        description="Further channels, for messages about some targets and tests only.",
        examples=[[{"to": ["slack"], "targets": ["example-lab/hexagon-v73"], "paths": ["tests/python/relay/*"]}]],
    )

    find: bool = Field(
        default=False,
        description=(
            "Whether the bot searches for the change with which tests began to fail, or measurements got worse: it "
            "runs the tests at commits of the range on idle devices, within the budget of `searches`, and writes the "
            "answer into the issue."
        ),
        examples=[True],
    )

    comment: bool = Field(
        default=False,
        description=(
            "Whether the bot also comments on the pull request with which it began, once `find` or a person's search "
            "names it."
        ),
        examples=[True],
    )

    revert: Literal["draft"] | None = Field(
        default=None,
        description=(
            "With `draft`, the bot opens a draft that reverts the pull request with which the tests began to fail: "
            "only if a search names it with a probability of at least 99 %, and the tests pass on a device without it. "
            "It needs write access to contents and pull requests, and never merges the draft."
        ),
        examples=["draft"],
    )

    @property
    def places(self) -> tuple[Place, ...]:
        """Return all channels that get messages."""
        return (*self.to, *(place for item in self.subscriptions for place in item.to))


def _check_results(regressions: Regressions, others: ValidatedKeys) -> None:
    """Raise an error of type LACKING if there are no results, or no such target; invalid results are the only error."""
    if others.has(LAB_RESULTS) and others.of(LAB_RESULTS) is None:
        raise PydanticCustomError(LACKING, NEEDS_RESULTS)
    check_targets((target for item in regressions.subscriptions for target in item.targets), others)


REGRESSIONS = ConfigKey(
    "regressions",
    Regressions,
    description="Reports confirmed regressions that labs found on the nightly branch. Needs `results`.",
    example={"to": ["discord"]},
    position=90,
    places=lambda regressions: regressions.places,
    check=_check_results,
)
KEYS = (REGRESSIONS,)
