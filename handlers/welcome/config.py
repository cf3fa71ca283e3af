"""The key `welcome`: the greeting for first-time contributors."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey
from bot.config.types import Says, Shared

WelcomeText = Annotated[
    str,
    StringConstraints(min_length=1, max_length=500, pattern=r"^[^\x00-\x1f\x7f]*[^\s\x00-\x1f\x7f][^\x00-\x1f\x7f]*$"),
    Says("text in one line, up to 500 characters"),
]


class Welcome(Keys):
    """A friendly line in the sticky comment of somebody's first pull request."""

    text: Shared[WelcomeText] = Field(
        default="Welcome, and thank you for your first pull request here!",
        description="The greeting, as plain text. The bot adds how to list the commands if `help` is on.",
        examples=["Welcome, and thank you for your first pull request here!"],
    )


WELCOME = ConfigKey(
    "welcome",
    Welcome,
    description="Greets first-time contributors in the sticky comment.",
    example=True,
    position=200,
)
KEYS = (WELCOME,)
