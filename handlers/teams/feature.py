"""The feature `teams`: its configuration, records, handlers and effects."""

from __future__ import annotations

from bot.feature import Feature
from handlers.teams import handler, records
from handlers.teams.config import KEYS
from handlers.teams.effects import MentionSubscribers, StoreTeamList

FEATURE = Feature(
    name="teams",
    config=KEYS,
    records=records.RECORDS,
    router=handler.router,
    effects=(MentionSubscribers, StoreTeamList),
    titles={"team-tags": "Teams", "team-list": "List of teams"},
)
