"""Create the parts for hardware results in one process: the watch, readers of queues, and the ingester."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Sequence
from typing import Any

from bot.aws.client import AWS, check_environment
from bot.aws.queue import Notifications
from bot.config.environment import SETTINGS
from bot.core.parts import PartKey
from bot.feature import RecurringWork, Services
from bot.results.service import RESULTS
from bot.web.openapi import Operation
from handlers.hardware.degraded.sweep import DEGRADED_SWEEP, DegradedSweep
from handlers.hardware.degraded.sweep import TICK as DEGRADED_TICK
from handlers.hardware.failures_route import failures_operation
from handlers.hardware.jobs.store import JOBS, JobStore
from handlers.hardware.jobs.sweep import SWEEP, JobSweep
from handlers.hardware.jobs.sweep import TICK as JOBS_TICK
from handlers.hardware.labs import wiring as labs
from handlers.hardware.labs.calls import LAB_CALLS
from handlers.hardware.listing import FailureListing, RunListing
from handlers.hardware.route import operation
from handlers.hardware.service import INGEST, IngestService
from handlers.hardware.watch import TICK, WATCH, Watch

QUEUES = PartKey[tuple[Notifications, ...]]("queues")


async def provide(services: Services) -> None:
    """Provide the parts. Raises `SettingsError` if there are labs and `AWS_*` variables cannot be used."""
    results = services.part(RESULTS)
    watch = Watch(
        services.config,
        results.store,
        services.records,
        services.journal,
        accept=services.announce,
        github_for=services.github_for,
        source_for=results.source_for,
        now=services.now,
    )
    if watch.repositories:
        await asyncio.to_thread(check_environment, list(watch.queues))
    services.parts[WATCH] = watch
    store = JobStore(services.connector, services.now)
    services.parts[JOBS] = store
    labs.provide(services)
    services.parts[INGEST] = IngestService(
        results, services.records, watch, store, services.part(LAB_CALLS), services.now
    )
    services.parts[SWEEP] = JobSweep(
        services.config, store, services.journal, accept=services.announce, now=services.now
    )
    services.parts[DEGRADED_SWEEP] = DegradedSweep(
        services.config, services.records, results.store, accept=services.announce, now=services.now
    )
    services.parts[QUEUES] = tuple(
        Notifications(services.part(AWS), queue, places) for queue, places in watch.queues.items()
    )


def routes(services: Services) -> Sequence[Operation]:
    """Return the routes that list runs and failing tests, and those of labs."""
    store = services.part(RESULTS).store
    return [
        operation(RunListing(services.config, store, services.records, services.part(SETTINGS).github_url)),
        failures_operation(FailureListing(services.config, store)),
        *labs.routes(services),
    ]


def timers(services: Services) -> Sequence[RecurringWork]:
    """Return the timers: the watch, if there are buckets, and the sweep of jobs, also after app.yaml lost its labs."""
    watch = services.part(WATCH)
    jobs = [
        RecurringWork("device-jobs", JOBS_TICK, services.part(SWEEP).tick),
        RecurringWork("degraded-targets", DEGRADED_TICK, services.part(DEGRADED_SWEEP).tick),
        *labs.timers(services),
    ]
    return [RecurringWork("hardware-results", TICK, watch.tick), *jobs] if watch.repositories else jobs


def listeners(services: Services) -> Sequence[Coroutine[Any, Any, None]]:
    """Return the tasks that read the queues and wake waiting claims."""
    watch = services.part(WATCH)
    return [*(queue.run(watch.heard) for queue in services.part(QUEUES)), *labs.listeners(services)]
