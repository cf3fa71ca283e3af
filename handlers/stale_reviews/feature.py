"""Everything of reminders of stale reviews."""

from __future__ import annotations

from bot.feature import Feature
from handlers.stale_reviews import handler
from handlers.stale_reviews.effects import Remind

FEATURE = Feature(
    name="stale_reviews",
    config=("stale_reviews",),
    router=handler.router,
    effects=(Remind,),
)
