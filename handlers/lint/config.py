"""The key `lint`: what the bot checks in the title and description of a pull request."""

from __future__ import annotations

from pydantic import Field

from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey
from bot.config.types import Shared
from handlers.teams.config import Topic


class Lint(Keys):
    """An advisory check run says what could be better about a pull request's title and description; it never fails."""

    tags: Shared[tuple[Topic, ...] | None] = Field(
        default=None,
        description=(
            "Tags that a title may have, as in `[tests] Fix it`, in addition to the topics of `teams` and "
            "the tag that skips CI. Case doesn't matter. Without this key: any."
        ),
        examples=[["tests", "docs", "hexagon"]],
    )


LINT = ConfigKey(
    "lint",
    Lint,
    description="Writes the advisory check run `nightjar/lint` about a pull request's title and description.",
    example={"tags": ["tests", "docs", "hexagon"]},
    position=190,
)
KEYS = (LINT,)
