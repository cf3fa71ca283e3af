"""The feature `operate`: the pages for operators."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bot.feature import Feature, Services
from bot.web.openapi import Operation
from handlers.operate.deliveries import deliveries_page, delivery_page
from handlers.operate.log import log_page
from handlers.operate.records import ASKED_REPLAYS
from handlers.operate.replay import replay_operations
from handlers.operate.state import check_now_operation, state_page
from handlers.operate.wiring import OperateParts


def routes(services: Services) -> Sequence[Operation]:
    """Return the routes of the pages, of their JSON twins, and of the buttons."""
    parts = OperateParts.of(services)
    pages = [page(parts) for page in (deliveries_page, delivery_page, state_page, log_page)]
    return [
        *(operation for page in pages for operation in page.operations()),
        *replay_operations(parts),
        check_now_operation(parts),
    ]


FEATURE = Feature(
    name="operate", records=(ASKED_REPLAYS,), routes=routes, templates=Path(__file__).parent / "templates"
)
