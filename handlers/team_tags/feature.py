"""The feature `team_tags`: its configuration, records, handlers and effects."""

from __future__ import annotations

from bot.feature import Feature
from handlers.team_tags import handler, topics
from handlers.team_tags.effects import MentionSubscribers, StoreTeamList

FEATURE = Feature(
    name="team_tags",
    config=("teams",),
    records=topics.RECORDS,
    router=handler.router,
    effects=(MentionSubscribers, StoreTeamList),
)
