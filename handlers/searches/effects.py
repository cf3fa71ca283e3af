"""Start a search, and store what it knows; all of it is stored with the plan."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import product

from bot.effects.remember import note_shown_change
from bot.engine.changes import Outdated
from bot.engine.internal import InternalEvent
from bot.engine.records import StoredValue
from bot.plan.effect import Applied, StoreContext, StoredEffect
from handlers.searches import texts
from handlers.searches.device_time import DEVICE_TIME
from handlers.searches.records import (
    CULPRIT_SEARCH,
    OPEN_SEARCH,
    SEARCH_SUMMARY,
    CulpritSearch,
    OpenSearch,
    SearchedTest,
    SearchRequest,
    SearchSummary,
    searched_test_key,
)

FIRST = "first"
"""What identifies the event that starts a search."""
FIRST_STEP = 1
"""The step of a search that is stored for the first time."""


@dataclass(frozen=True, slots=True)
class SearchEvent:
    """A search starts, if it has a `request`, or is to look for what it missed. `asked` identifies the event.

    `at` is the time, in seconds since 1970. `issue` is the key of the issue that shows the search; empty for that of
    the target.
    """

    id: str
    asked: str
    at: float
    request: SearchRequest | None = None
    issue: str = ""

    @classmethod
    def start(cls, request: SearchRequest, at: float, issue: str = "") -> SearchEvent:
        """Return the event that starts a search."""
        return cls(request.id, FIRST, at, request, issue)


SEARCH_EVENT = InternalEvent(
    "nightjar.search",
    SearchEvent,
    guid=lambda repository, event: f"search:{repository}:{event.id}:{event.asked}",
    lock=lambda repository, event: f"search:{repository}:{event.id}",
)


@dataclass(frozen=True, slots=True)
class StartSearch(StoredEffect):
    """Start a search; the same request is searched once."""

    event: SearchEvent

    @property
    def effect_key(self) -> str:
        """The ID of the search."""
        return f"search:{self.event.id}:start"

    async def store(self, context: StoreContext) -> Applied:
        """Announce the request."""
        new = await context.changes.announce(SEARCH_EVENT, context.repository, self.event)
        return Applied(texts.STARTED.format(id=self.event.id), changed=new)


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

        old = await context.changes.get(key)
        await context.changes.change(key, changed)
        runs = old.runs if old is not None else ()
        count = partial(context.part(DEVICE_TIME).add, context.repository.full_name, runs, search.runs)
        context.changes.after_commit.append(count)
        is_open = OpenSearch(context.repository.full_name, self.id) if search.answer is None else None
        open_key = OPEN_SEARCH.of(context.repository.id, self.id)
        context.changes.write(open_key.name, StoredValue.of(open_key, is_open) if is_open else None)
        summary = SearchSummary.of(search)
        context.changes.put(SEARCH_SUMMARY.of(context.repository.id, summary.place), summary)
        note_shown_change(context, key.name)
        if search.step == FIRST_STEP and not search.request.measurement:
            for target, test in product(search.request.targets, search.request.tests):
                test_key = searched_test_key(context.repository.id, target, search.request.suite, test)
                context.changes.put(test_key, SearchedTest(summary.place))
        return Applied(texts.STORED.format(id=self.id, step=self.step))
