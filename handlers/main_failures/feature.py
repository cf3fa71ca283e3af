"""The feature `main_failures`: its configuration, records, handlers and effects."""

from __future__ import annotations

from bot.feature import Feature
from handlers.main_failures import handler
from handlers.main_failures.config import KEYS
from handlers.main_failures.effects import SCAN_EVENT, RequestScan
from handlers.main_failures.records import RECORDS

FEATURE = Feature(
    name="main_failures",
    config=KEYS,
    events=(SCAN_EVENT,),
    records=RECORDS,
    router=handler.router,
    effects=(RequestScan,),
    titles={
        "main-failures-triggers": "Failures of branches",
        "main-failures": "Failures of branches",
        "main-failures-scan": "Failures of branches",
    },
)
