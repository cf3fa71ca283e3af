"""Everything of the results of hardware labs."""

from __future__ import annotations

from bot.feature import Feature
from bot.plan.handler import joined
from bot.results.deliveries import CHECK_EVENT, RUN_ARRIVED
from handlers.hardware import check_runs, ingest_runs, regressions, watch, wiring
from handlers.hardware.check_runs import IGNORED
from handlers.hardware.effects import IngestRun, RequestCheckRun, StoreReports
from handlers.hardware.metrics import ResultsGauges
from handlers.hardware.regressions import REGRESSIONS

FEATURE = Feature(
    name="hardware",
    config=("results", "regressions"),
    events=(CHECK_EVENT, RUN_ARRIVED),
    records=(IGNORED, REGRESSIONS, watch.LISTED, watch.FAILED_CHECKS),
    router=joined([ingest_runs.router, check_runs.router, regressions.router]),
    effects=(IngestRun, RequestCheckRun, StoreReports),
    provide=wiring.provide,
    routes=wiring.routes,
    timers=wiring.timers,
    listeners=wiring.listeners,
    metrics=ResultsGauges,
)
