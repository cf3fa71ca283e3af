"""A run has appeared in the bucket: it is read, checked and stored.

What people see of it, `hardware_results` decides.
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
    """Take every run that is announced: whether it may be taken is found out where it is read."""
    arrival = RUN_ARRIVED.read(context.delivery.payload).arrival
    return Plan((IngestRun(arrival.bucket, arrival.key, arrival.version),), why=WHY_ARRIVED.format(key=arrival.key))
