"""The feature that moves tracking branches: the nightly branch and the last good branch."""

from __future__ import annotations

from collections.abc import Sequence

from bot.feature import Feature, Services
from bot.plan.handler import joined
from bot.web.openapi import Operation
from handlers.branches import last_good, last_good_route, nightly, nightly_route, record
from handlers.branches.metrics import LastGoodGauges
from handlers.branches.nightly_effects import MarkNightly, PublishNightly
from handlers.branches.record import NIGHTLY, TrackingRecord


def routes(services: Services) -> Sequence[Operation]:
    """Return the routes of both branches."""
    return [
        nightly_route.operation(
            nightly_route.NightlyBranches(TrackingRecord(services.config, services.records, NIGHTLY))
        ),
        last_good_route.operation(last_good.LastGoods(services.config, services.records, services.now)),
    ]


FEATURE = Feature(
    name="branches",
    config=("nightly", "last_good"),
    records=record.RECORDS,
    router=joined([nightly.router, last_good.router]),
    effects=(MarkNightly, PublishNightly),
    routes=routes,
    metrics=LastGoodGauges,
)
