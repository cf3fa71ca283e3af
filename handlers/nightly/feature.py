"""The feature `nightly`: its handler, effects and route."""

from __future__ import annotations

from collections.abc import Sequence

from bot.feature import Feature, Services
from bot.results.service import RESULTS
from bot.web.openapi import Operation
from handlers.nightly import handler, route
from handlers.nightly.config import KEYS
from handlers.nightly.effects import MarkNightly, PublishNightly
from handlers.tracking_branches.records import NIGHTLY, TrackingRecord


def routes(services: Services) -> Sequence[Operation]:
    """Return the route of nightly branches."""
    record = TrackingRecord(services.config, services.records, NIGHTLY)
    return [route.operation(route.NightlyBranches(record, services.part(RESULTS)))]


FEATURE = Feature(
    name="nightly",
    config=KEYS,
    router=handler.router,
    effects=(MarkNightly, PublishNightly),
    routes=routes,
    titles={"nightly": "Nightly branch"},
)
