"""The feature `stale_reviews`: its configuration, records, handlers and effects."""

from __future__ import annotations

from bot.feature import Feature
from handlers.stale_reviews import handler
from handlers.stale_reviews.config import KEYS
from handlers.stale_reviews.effects import Remind
from handlers.stale_reviews.records import REMINDED_AT

FEATURE = Feature(
    name="stale_reviews",
    config=KEYS,
    records=(REMINDED_AT,),
    router=handler.router,
    effects=(Remind,),
    titles={"stale-reviews": "Reminders of reviews"},
)
