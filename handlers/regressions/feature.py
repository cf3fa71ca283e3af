"""The feature `regressions`: messages about lasting failures of hardware targets on the nightly branch."""

from __future__ import annotations

from collections.abc import Sequence

from bot.feature import Feature, Services
from bot.plan.handler import joined
from bot.results.service import RESULTS
from bot.web.openapi import Operation
from handlers.regressions import nightly_news, target_news
from handlers.regressions.begun import FAILURES_BEGUN, AnnounceBegun
from handlers.regressions.config import KEYS
from handlers.regressions.effects import StoreReports
from handlers.regressions.failures_route import FailureListing, failures_operation
from handlers.regressions.moved import news as moved_news
from handlers.regressions.moved.groups import MOVED_GROUP
from handlers.regressions.moved.search import MOVES_ARRIVED, SearchMoves
from handlers.regressions.nightly_news import NIGHTLY_NEWS, NewsAnnouncer
from handlers.regressions.records import REGRESSION_GROUP, REGRESSIONS, WAITING_NEWS
from handlers.results.watch import WATCH


async def provide(services: Services) -> None:
    """Let the watch of results also announce news that has waited long enough."""
    announcer = NewsAnnouncer(services.config, services.records, accept=services.announce, clock=services.now)
    services.part(WATCH).add_work(announcer.announce_news, announcer.pending)


def routes(services: Services) -> Sequence[Operation]:
    """Return the route that lists failing tests."""
    return [failures_operation(FailureListing(services.config, services.part(RESULTS).store, services.records))]


FEATURE = Feature(
    name="regressions",
    config=KEYS,
    events=(NIGHTLY_NEWS, MOVES_ARRIVED, FAILURES_BEGUN),
    records=(REGRESSIONS, WAITING_NEWS, REGRESSION_GROUP, MOVED_GROUP),
    router=joined([target_news.router, nightly_news.router, moved_news.router]),
    effects=(StoreReports, SearchMoves, AnnounceBegun),
    provide=provide,
    routes=routes,
    titles={
        "regressions": "Regressions",
        "nightly-news": "News of nightly runs",
        moved_news.NAME: "Measurements that moved",
    },
)
