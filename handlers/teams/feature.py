"""The feature `teams`: its configuration, records, handlers and effects."""

from __future__ import annotations

from bot.feature import Feature
from handlers.teams import handler, topics
from handlers.teams.effects import MentionSubscribers, StoreTeamList

FEATURE = Feature(
    name="teams",
    config=("teams",),
    records=topics.RECORDS,
    router=handler.router,
    effects=(MentionSubscribers, StoreTeamList),
)
