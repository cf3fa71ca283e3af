"""Start a search, continue it, and store what it knows; all of it is stored with the plan."""

from __future__ import annotations

from dataclasses import dataclass

from bot.core.utc import iso_utc
from bot.engine.changes import Outdated
from bot.engine.internal import InternalEvent
from bot.engine.records import StoredValue
from bot.plan.effect import Applied, StoreContext, StoredEffect
from handlers.searches import texts
from handlers.searches.records import CULPRIT_SEARCH, CulpritSearch, SearchRequest

FIRST = "first"
"""What identifies the event that starts a search."""


@dataclass(frozen=True, slots=True)
class SearchEvent:
    """A search starts, if it has a `request`, or is to look for what it missed. `asked` identifies the event."""

    id: str
    asked: str
    request: SearchRequest | None = None


SEARCH_EVENT = InternalEvent(
    "nightjar.search",
    SearchEvent,
    guid=lambda repository, event: f"search:{repository}:{event.id}:{event.asked}",
    lock=lambda repository, event: f"search:{repository}:{event.id}",
)


@dataclass(frozen=True, slots=True)
class ContinueSearch(StoredEffect):
    """Let a search look for jobs again at a moment, in seconds since 1970, even if none of them has ended."""

    id: str
    at: float

    @property
    def effect_key(self) -> str:
        """The ID of the search, and the moment."""
        return f"search:{self.id}:continue:{self.at:.0f}"

    async def store(self, context: StoreContext) -> Applied:
        """Announce the event, once for each moment."""
        event = SearchEvent(self.id, f"{self.at:.0f}")
        new = await context.changes.announce(SEARCH_EVENT, context.repository, event, not_before=self.at)
        return Applied(texts.CONTINUED.format(id=self.id, moment=iso_utc(self.at)), changed=new)


@dataclass(frozen=True, slots=True)
class StoreSearch(StoredEffect):
    """Store a search if no other job has changed it since it was read: else the plan is made again."""

    id: str
    step: int
    stored: StoredValue

    @classmethod
    def of(cls, repository_id: int, search: CulpritSearch) -> StoreSearch:
        """Return the effect that stores a search."""
        return cls(search.id, search.step, StoredValue.of(CULPRIT_SEARCH.of(repository_id, search.id), search))

    @property
    def effect_key(self) -> str:
        """The ID of the search."""
        return f"search:{self.id}:store"

    async def store(self, context: StoreContext) -> Applied:
        """Replace the record of the step before. Raises `Outdated`."""
        key = CULPRIT_SEARCH.of(context.repository.id, self.id)
        search = CULPRIT_SEARCH.load(key.name, self.stored.value, self.stored.version)

        def changed(old: CulpritSearch | None) -> CulpritSearch:
            if (old.step if old else 0) != self.step - 1:
                raise Outdated(key.name)
            return search

        await context.changes.change(key, changed)
        return Applied(texts.STORED.format(id=self.id, step=self.step))
