"""The keys of `lint`: what the bot checks in the title and description of a pull request."""

from __future__ import annotations

from pydantic import Field

from bot.config.keys import Keys
from bot.config.teams import Topic
from bot.config.types import Shared


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
