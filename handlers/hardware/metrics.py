"""Gauges of hardware results: how long ago buckets were listed, queues answered and runs were stored."""

from __future__ import annotations

import time
from functools import partial

from prometheus_client import CollectorRegistry, Gauge

from bot.feature import Services
from handlers.hardware.jobs.gauges import JobGauges
from handlers.hardware.labs.calls import LAB_CALLS
from handlers.hardware.watch import WATCH
from handlers.hardware.wiring import QUEUES


class ResultsGauges:
    """The gauges of hardware results; if something has never happened, its age counts from the start of the process."""

    def __init__(self, services: Services, registry: CollectorRegistry) -> None:
        services.part(LAB_CALLS).measure(registry)
        self._jobs = JobGauges(services, registry)
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
        await self._jobs.refresh()
        for gauge, values in ((self._listed, health.listed), (self._waiting_runs, health.waiting)):
            for name, value in values.items():
                gauge.labels(name).set(value)
        for about, seconds in health.newest.items():
            self._newest.labels(about.repository, about.lab, about.target).set(seconds)

    def clear(self) -> None:
        """Remove the values of the last refresh; only what this process knows stays: when each queue answered last."""
        self._jobs.clear()
        for gauge in (self._listed, self._waiting_runs, self._newest, self._heard):
            gauge.clear()
        now = time.time()
        for queue in self._queues:
            self._heard.labels(queue.queue_url).set(now - (queue.heard or self._began))
