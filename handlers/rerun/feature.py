"""The feature `rerun`: the commands `@ci rerun` and `@ci approve ci`."""

from __future__ import annotations

from bot.feature import Feature
from handlers.rerun import commands
from handlers.rerun.config import KEYS

FEATURE = Feature(
    name="rerun",
    config=KEYS,
    router=commands.router,
    commands=commands.COMMANDS,
)
