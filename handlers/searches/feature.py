"""The feature `searches`: which commit tests began to fail with, found by running them on idle devices."""

from __future__ import annotations

from collections.abc import Sequence

from bot.feature import Feature, RecurringWork, Services
from bot.plan.handler import joined
from handlers.searches import command, handler
from handlers.searches.device_time import DEVICE_TIME, DeviceTime, DeviceTimeMetrics
from handlers.searches.effects import SEARCH_EVENT, StartSearch, StoreSearch
from handlers.searches.records import CULPRIT_SEARCH, OPEN_SEARCH, SEARCH_SUMMARY, SEARCHED_TEST
from handlers.searches.revert import handler as revert_handler
from handlers.searches.revert.effects import (
    CheckRevert,
    CorrectDraft,
    MakeRevertedHead,
    RemoveRevertedHead,
    StoreRevert,
)
from handlers.searches.revert.records import CULPRIT_REVERT, OPEN_REVERT, REVERT_EVENT, REVERTED_HEAD
from handlers.searches.sweep import TICK, SearchSweep


async def provide(services: Services) -> None:
    """Provide the count of device time."""
    services.parts[DEVICE_TIME] = DeviceTime()


def timers(services: Services) -> Sequence[RecurringWork]:
    """Return the timer of searches that have no answer, and of reverts that wait for tests."""
    sweep = SearchSweep(services)
    return [RecurringWork("searches", TICK, sweep.tick, sweep.has_work)]


FEATURE = Feature(
    name="searches",
    events=(SEARCH_EVENT, REVERT_EVENT),
    records=(CULPRIT_SEARCH, OPEN_SEARCH, SEARCH_SUMMARY, SEARCHED_TEST, CULPRIT_REVERT, OPEN_REVERT, REVERTED_HEAD),
    router=joined([handler.router, command.router, revert_handler.router]),
    commands=command.COMMANDS,
    provide=provide,
    timers=timers,
    metrics=DeviceTimeMetrics,
    effects=(StartSearch, StoreSearch, CheckRevert, CorrectDraft, MakeRevertedHead, RemoveRevertedHead, StoreRevert),
    titles={
        handler.NAME: "Searches for a culprit",
        handler.ENDED_RUN: "Runs of searches for a culprit",
        handler.BEGUN: "Failures whose culprit is searched",
        revert_handler.NAME: "Drafts that revert a culprit",
        revert_handler.ENDED_RUN: "Tests without a culprit",
        command.NAME: "Commands on issues about regressions",
    },
)
