"""The feature `searches`: which commit tests began to fail with, found by running them on idle devices."""

from __future__ import annotations

from bot.feature import Feature
from handlers.searches import handler
from handlers.searches.effects import SEARCH_EVENT, ContinueSearch, StoreSearch
from handlers.searches.records import CULPRIT_SEARCH

FEATURE = Feature(
    name="searches",
    events=(SEARCH_EVENT,),
    records=(CULPRIT_SEARCH,),
    router=handler.router,
    effects=(ContinueSearch, StoreSearch),
    titles={handler.NAME: "Searches for a culprit", handler.ENDED_RUN: "Runs of searches for a culprit"},
)
