"""Everything of the results of hardware labs."""

from __future__ import annotations

from bot.feature import Feature
from bot.plan.handler import joined
from handlers.hardware import check_runs, ingest_runs, regressions
from handlers.hardware.effects import IngestRun

FEATURE = Feature(
    name="hardware",
    config=("results", "regressions"),
    router=joined([ingest_runs.router, check_runs.router, regressions.router]),
    effects=(IngestRun,),
)
