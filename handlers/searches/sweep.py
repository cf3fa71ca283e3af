"""Let searches without an answer, and reverts that wait, look for jobs once an hour: budgets and devices come back."""

from __future__ import annotations

from typing import TYPE_CHECKING

from bot.core.events import Repository
from bot.core.listing import counted
from bot.engine.internal import announce
from bot.engine.sweeps import hours_between
from handlers.searches import texts
from handlers.searches.effects import SEARCH_EVENT, SearchEvent
from handlers.searches.records import OPEN_SEARCH
from handlers.searches.revert.records import OPEN_REVERT, REVERT_EVENT, RevertEvent

if TYPE_CHECKING:
    from bot.feature import Services

TICK = "7 * * * *"
"""When the sweep runs. A day's budgets begin at midnight (UTC)."""


class SearchSweep:
    """Continues all searches that have no answer, and the tests of reverts."""

    def __init__(self, services: Services) -> None:
        self._services = services

    async def has_work(self) -> bool:
        """Return whether any search has no answer, or any revert waits for its tests."""
        records = self._services.records
        return bool(await records.under(OPEN_SEARCH) or await records.under(OPEN_REVERT))

    async def tick(self) -> str:
        """Announce each, once an hour."""
        moment, count = self._services.now(), 0
        for key, search in (await self._services.records.under(OPEN_SEARCH)).items():
            repository = Repository(int(key.partition(":")[0]), search.repository, None)
            event = SearchEvent(search.id, str(hours_between(0.0, moment)), moment)
            count += await announce(self._services.announce, SEARCH_EVENT, repository, event)
        for key, revert in (await self._services.records.under(OPEN_REVERT)).items():
            repository = Repository(int(key.partition(":")[0]), revert.repository, None)
            revert_event = RevertEvent(revert.id, revert.pull, str(hours_between(0.0, moment)), moment)
            count += await announce(self._services.announce, REVERT_EVENT, repository, revert_event)
        return texts.SWEPT.format(events=counted(count, "event"))
