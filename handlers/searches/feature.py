"""The feature `searches`: which commit tests began to fail with, found by running them on idle devices."""

from __future__ import annotations

from collections.abc import Sequence

from bot.feature import Feature, RecurringWork, Services
from bot.plan.handler import joined
from handlers.searches import command, handler
from handlers.searches.device_time import DEVICE_TIME, DeviceTime, DeviceTimeMetrics
from handlers.searches.effects import SEARCH_EVENT, StartSearch, StoreSearch
from handlers.searches.records import CULPRIT_SEARCH, OPEN_SEARCH, SEARCH_SUMMARY, SEARCHED_TEST
from handlers.searches.sweep import TICK, SearchSweep


async def provide(services: Services) -> None:
    """Provide the count of device time."""
    services.parts[DEVICE_TIME] = DeviceTime()


def timers(services: Services) -> Sequence[RecurringWork]:
    """Return the timer of searches that have no answer."""
    sweep = SearchSweep(services)
    return [RecurringWork("searches", TICK, sweep.tick, sweep.has_work)]


FEATURE = Feature(
    name="searches",
    events=(SEARCH_EVENT,),
    records=(CULPRIT_SEARCH, OPEN_SEARCH, SEARCH_SUMMARY, SEARCHED_TEST),
    router=joined([handler.router, command.router]),
    commands=command.COMMANDS,
    provide=provide,
    timers=timers,
    metrics=DeviceTimeMetrics,
    effects=(StartSearch, StoreSearch),
    titles={
        handler.NAME: "Searches for a culprit",
        handler.ENDED_RUN: "Runs of searches for a culprit",
        handler.BEGUN: "Failures whose culprit is searched",
        command.NAME: "Commands on issues about regressions",
    },
)
