"""The feature `skip_ci`: the status that says whether CI may skip a pull request."""

from __future__ import annotations

from bot.feature import Feature
from handlers.skip_ci import handler

FEATURE = Feature(name="skip_ci", config=("skip_ci",), records=(handler.SKIP_CI,), router=handler.router)
