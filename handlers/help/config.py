"""The key `help`: whether `@ci help` works."""

from __future__ import annotations

from bot.config.keys import Keys
from bot.config.repository_keys import ConfigKey


class Help(Keys):
    """`@ci help`: lists the commands that are on in this repository."""


HELP = ConfigKey(
    "help",
    Help,
    description="`@ci help` lists the enabled commands.",
    example=False,
    position=40,
    shared=True,
    on_by_default=True,
)
KEYS = (HELP,)
