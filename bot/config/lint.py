"""The keys below `lint`: what is looked at in the title and the text of a pull request."""

from __future__ import annotations

from pydantic import Field

from bot.config.keys import Keys
from bot.config.teams import Topic
from bot.config.types import Shared


class Lint(Keys):
    """An advisory check run says what could be better about a pull request's title and text; it never fails."""

    tags: Shared[tuple[Topic, ...] | None] = Field(
        default=None,
        description=(
            "The tags that a title may have, as in `[tests] Fix it`, beside the topics of `teams` and the tag that "
            "skips CI. Upper and lower case are the same. Without this key, any."
        ),
        examples=[["tests", "docs", "hexagon"]],
    )
