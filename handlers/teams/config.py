"""The key `teams`: the subscribers of each topic."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from pydantic import Field, StringConstraints

from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey
from bot.config.types import Says, Shared, WholeNumber

Topic = Annotated[
    str,
    StringConstraints(pattern=r"^[^\s\[\],@\x00-\x1f\x7f](?:[^\[\],@\x00-\x1f\x7f]{0,48}[^\s\[\],@\x00-\x1f\x7f])?$"),
    Says("a tag or the name of a label, up to 50 characters without brackets, commas and @, as in hexagon"),
]

Subscriber = Annotated[
    str,
    StringConstraints(
        # Logins of managed users end in `_` and a short code:
        # https://docs.github.com/enterprise-cloud@latest/admin/managing-iam/iam-configuration-reference/username-considerations-for-external-authentication
        pattern=r"^@[A-Za-z0-9][A-Za-z0-9-]{0,38}(?:_[A-Za-z0-9]{3,8})?(?:/[A-Za-z0-9][A-Za-z0-9_-]{0,99})?$"
    ),
    Says('a person or a team with its @, in quotes, as in "@octocat" or "@octo-org/compiler"'),
]


class Teams(Keys):
    """The bot mentions the subscribers of a topic when a title's `[tag]` or a label names it."""

    topics: Shared[Mapping[Topic, tuple[Subscriber, ...]]] = Field(
        default={},
        description=(
            "Topics with their subscribers: people, and teams of the organization. Case of topics doesn't matter."
        ),
        examples=[{"hexagon": ["@octocat", "@hubot"]}],
    )
    issue: Shared[WholeNumber | None] = Field(
        default=None,
        description=(
            "Number of an issue that lists more subscribers, as lines `- hexagon @octocat @hubot` in its "
            "text and comments. Only texts by people with the triage role count: choose an issue that one "
            "of them opened."
        ),
        examples=[10317],
    )


TEAMS = ConfigKey(
    "teams",
    Teams,
    description="Mentions the subscribers of a topic once, when a title's `[tag]` or a label names it.",
    example={"topics": {"hexagon": ["@octocat", "@hubot"]}, "issue": 10317},
    position=170,
)
KEYS = (TEAMS,)
