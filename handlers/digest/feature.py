"""The feature `digest`: a weekly message about each lab."""

from __future__ import annotations

from bot.feature import Feature
from handlers.digest.config import KEYS
from handlers.digest.handler import NAME, router

FEATURE = Feature(name="digest", config=KEYS, router=router, titles={NAME: "Weekly digest"})
