"""The feature `last_good`: its handler and route, and gauges of how far a branch is behind and what is in its way."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from prometheus_client import CollectorRegistry, Gauge

from bot.feature import Feature, Services
from bot.web.openapi import Operation
from handlers.last_good import handler, route
from handlers.last_good.config import KEYS
from handlers.last_good.route import LastGoods

LAG = (
    "Commits of its source that the last good branch lacks. Only first parents are counted if it is at one of the 100 "
    "newest of them, else all commits."
)


class LastGoodGauges:
    """The gauges of last good branches."""

    def __init__(self, services: Services, registry: CollectorRegistry) -> None:
        self._branches = LastGoods(services.config, services.records, services.now)
        gauge = partial(Gauge, registry=registry)
        self._lag_commits = gauge("nightjar_last_good_lag_commits", LAG, ["repository"])
        self._lag_seconds = gauge(
            "nightjar_last_good_lag_seconds",
            "Age of the oldest commit that the last good branch lacks.",
            ["repository"],
        )
        self._sole_blocker = gauge(
            "nightjar_last_good_sole_blocker",
            "Commits that would be good without this check, which is red or missing; the ten worst checks.",
            ["repository", "name"],
        )

    async def refresh(self) -> None:
        """Read the records."""
        branches = await self._branches.lag_reports()
        # Only after the read, which waits: a scrape in between would find no values.
        self.clear()
        for branch in branches:
            self._lag_commits.labels(branch.repository).set(branch.commits)
            if branch.seconds is not None:
                self._lag_seconds.labels(branch.repository).set(branch.seconds)
            for name, commits in branch.blockers.items():
                self._sole_blocker.labels(branch.repository, name).set(commits)

    def clear(self) -> None:
        """Remove all."""
        for gauge in (self._lag_commits, self._lag_seconds, self._sole_blocker):
            gauge.clear()


def routes(services: Services) -> Sequence[Operation]:
    """Return the route of last good branches."""
    return [route.operation(LastGoods(services.config, services.records, services.now))]


FEATURE = Feature(
    name="last_good",
    config=KEYS,
    router=handler.router,
    routes=routes,
    metrics=LastGoodGauges,
    titles={"last-good": "Last good branch"},
)
