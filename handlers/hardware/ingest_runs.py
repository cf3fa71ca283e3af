"""Ingest runs that have appeared in the bucket: read, check and store them.

`check_runs` decides what people see.
"""

from __future__ import annotations

from bot.plan.handler import Context, Plan, Router
from bot.results.deliveries import RUN_ARRIVED
from handlers.hardware.effects import IngestRun
from handlers.hardware.texts import WHY_ARRIVED

NAME = "hardware-runs"

router = Router()


@router.on(RUN_ARRIVED.name, name=NAME, feature="results")
async def ingest_run(context: Context) -> Plan:
    """Plan the ingestion of every announced run: the ingester decides whether it is admitted."""
    arrival = RUN_ARRIVED.read(context.delivery.payload).arrival
    return Plan((IngestRun(arrival.bucket, arrival.key, arrival.version),), why=WHY_ARRIVED.format(key=arrival.key))
