"""Let searches without an answer look for jobs again: once an hour, because budgets and idle devices come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.core.events import Repository
from bot.engine.internal import announce
from bot.engine.sweeps import hours_between
from handlers.searches import texts
from handlers.searches.effects import SEARCH_EVENT, SearchEvent
from handlers.searches.records import OPEN_SEARCH

if TYPE_CHECKING:
    from bot.feature import Services

TICK = "7 * * * *"
"""When the sweep runs. A day's budgets begin at midnight (UTC)."""


class SearchSweep:
    """Continues all searches that have no answer."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def has_work(self) -> bool:
        """Return whether any search has no answer."""
        return bool(await self._services.records.under(OPEN_SEARCH))

    async def tick(self) -> str:
        """Announce each search, once an hour."""
        moment, count = self._services.now(), 0
        for key, search in (await self._services.records.under(OPEN_SEARCH)).items():
            repository = Repository(int(key.partition(":")[0]), search.repository, None)
            event = SearchEvent(search.id, str(hours_between(0.0, moment)), moment)
            count += await announce(self._services.announce, SEARCH_EVENT, repository, event)
        return texts.SWEPT.format(count=count)
