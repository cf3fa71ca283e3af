"""The feature `results`: runs of hardware labs, from the bucket into the store and into check runs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Coroutine, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Gauge

from bot.aws.client import AWS, check_environment
from bot.aws.queue import Notifications
from bot.config.environment import SETTINGS
from bot.core.errors import SettingsError
from bot.core.parts import PartKey
from bot.engine.service import ENGINE
from bot.feature import Feature, RecurringWork, Services
from bot.plan.handler import Context, Plan, Router, joined
from bot.results.deliveries import CHECK_EVENT, RUN_ARRIVED
from bot.results.service import RESULTS
from bot.web.openapi import Operation
from handlers.results import check_runs
from handlers.results.config import KEYS
from handlers.results.effects import IngestRun, RequestCheckRun
from handlers.results.ingest import INGEST, IngestService
from handlers.results.listing import RunListing
from handlers.results.records import CODE_OWNERS, FAILED_CHECKS, IGNORED, LISTED, RECENTLY_LISTED, REFUSED_PRESS
from handlers.results.requested_tests import REQUESTED_TESTS
from handlers.results.route import operation
from handlers.results.texts import NEEDS_BUCKET, WHY_ARRIVED
from handlers.results.watch import DAILY, TICK, WATCH, Watch

NAME = "hardware-runs"
QUEUES = PartKey[tuple[Notifications, ...]]("queues")

router = Router()


@router.on(RUN_ARRIVED.name, name=NAME, feature="results")
async def ingest_run(context: Context) -> Plan:
    """Plan the ingestion of every announced run: the ingester decides whether it is admitted."""
    arrival = RUN_ARRIVED.read(context.delivery.payload).arrival
    return Plan((IngestRun(**asdict(arrival)),), why=WHY_ARRIVED.format(key=arrival.key))


async def provide(services: Services) -> None:
    """Provide the watch, the ingester and the readers of queues.

    Raises `SettingsError` if there are labs and `AWS_*` variables cannot be used.
    """
    results = services.part(RESULTS)
    watch = Watch(
        services.config,
        results.store,
        services.records,
        services.journal,
        accept=services.announce,
        github_for=services.github_for,
        source_for=results.source_for,
        clock=services.now,
    )
    if any(results.bucket for results in watch.buckets):
        await asyncio.to_thread(check_environment, list(watch.queues))
    if any(results.bucket is None for results in watch.buckets) and not services.part(ENGINE).database.embedded:
        raise SettingsError([NEEDS_BUCKET])
    services.parts[WATCH] = watch
    # Looked up for each run: another feature provides it, after this one.
    services.parts[INGEST] = IngestService(
        results, services.records, watch, lambda: services.part(REQUESTED_TESTS), services.now
    )
    services.parts[QUEUES] = tuple(
        Notifications(services.part(AWS), queue, folders) for queue, folders in watch.queues.items()
    )


def routes(services: Services) -> Sequence[Operation]:
    """Return the route that lists runs."""
    store = services.part(RESULTS).store
    return [operation(RunListing(services.config, store, services.records, services.part(SETTINGS).github_url))]


def timers(services: Services) -> Sequence[RecurringWork]:
    """Return the timers of the watch, if there are labs."""
    watch = services.part(WATCH)
    if not watch.buckets:
        return []
    work = [RecurringWork("hardware-results", TICK, watch.tick, watch.has_work)]
    if any(results.bucket is None for results in watch.buckets):
        work.append(RecurringWork("results-folder", DAILY, watch.remove_old_files))
    return work


def listeners(services: Services) -> Sequence[Coroutine[Any, Any, None]]:
    """Return the tasks that read the queues."""
    watch = services.part(WATCH)
    return [queue.run(watch.announce_arrival) for queue in services.part(QUEUES)]


class ResultsGauges:
    """The gauges of hardware results; if something has never happened, its age counts from the start of the process."""

    def __init__(self, services: Services, registry: CollectorRegistry) -> None:
        self._watch = services.part(WATCH)
        self._queues = services.part(QUEUES)
        self._began = time.time()
        gauge = partial(Gauge, registry=registry)
        self._listed = gauge(
            "nightjar_results_listed_age_seconds", "Seconds since a bucket was last listed.", ["repository"]
        )
        self._heard = gauge("nightjar_results_queue_heard_age_seconds", "Seconds since SQS last answered.", ["queue"])
        self._waiting_runs = gauge("nightjar_results_waiting_runs", "Runs waiting for files.", ["repository"])
        self._newest = gauge(
            "nightjar_results_newest_run_age_seconds",
            "Seconds since a target's last run was stored.",
            ["repository", "lab", "target"],
        )

    async def refresh(self) -> None:
        """Read the records and the store."""
        health = await self._watch.health()
        self.clear()
        for gauge, values in ((self._listed, health.listed), (self._waiting_runs, health.waiting)):
            for repository, value in values.items():
                gauge.labels(repository).set(value)
        for target, seconds in health.newest.items():
            self._newest.labels(target.repository, target.lab, target.target).set(seconds)

    def clear(self) -> None:
        """Remove the values of the last refresh; set the age of each queue's last answer, which this process knows."""
        for gauge in (self._listed, self._waiting_runs, self._newest, self._heard):
            gauge.clear()
        moment = time.time()
        for queue in self._queues:
            self._heard.labels(queue.queue_url).set(moment - (queue.heard or self._began))


FEATURE = Feature(
    name="results",
    config=KEYS,
    events=(CHECK_EVENT, RUN_ARRIVED),
    records=(IGNORED, REFUSED_PRESS, CODE_OWNERS, LISTED, RECENTLY_LISTED, FAILED_CHECKS),
    router=joined([router, check_runs.router]),
    effects=(IngestRun, RequestCheckRun),
    provide=provide,
    routes=routes,
    timers=timers,
    listeners=listeners,
    metrics=ResultsGauges,
    titles={
        "hardware-runs": "Uploaded results",
        "hardware-results-all": "Check runs of hardware labs",
        "hardware-results": "Check runs of hardware labs",
    },
)
