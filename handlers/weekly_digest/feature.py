"""The feature `weekly_digest`: a weekly message about each lab."""

from __future__ import annotations

from bot.feature import Feature
from handlers.weekly_digest.config import KEYS
from handlers.weekly_digest.handler import NAME, router

FEATURE = Feature(name="weekly_digest", config=KEYS, router=router, titles={NAME: "Weekly digest"})
