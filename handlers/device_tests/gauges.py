"""Gauges of jobs for devices, for the targets that accept requests in app.yaml and no others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING

from nightjar_formats.model import TargetKey
from prometheus_client import CollectorRegistry, Gauge

from handlers.device_tests.measured import MeasuredTarget, measure_jobs
from handlers.device_tests.targets import request_targets
from handlers.results.config import LAB_RESULTS

if TYPE_CHECKING:
    from bot.feature import Services

LABELS = ["repository", "lab", "target"]


class JobGauges:
    """The gauges of jobs; every replica reads the same from the database."""

    def __init__(self, services: Services, registry: CollectorRegistry) -> None:
        self._services = services
        gauge = partial(Gauge, registry=registry)
        self._jobs = gauge(
            "nightjar_device_jobs",
            "Open jobs for devices: waiting (for approval), queued, idle (of the bot), leased.",
            [*LABELS, "state"],
        )
        self._oldest = gauge(
            "nightjar_device_jobs_oldest_queued_seconds", "Age of the oldest queued job for a device.", LABELS
        )
        self._claim = gauge(
            "nightjar_device_jobs_claim_seconds",
            "Average time to the first claim, for the jobs of the last day.",
            LABELS,
        )
        self._repeated = gauge(
            "nightjar_device_jobs_handed_out_again", "How often jobs of the last day were handed out again.", LABELS
        )
        self._unanswered = gauge(
            "nightjar_device_jobs_unanswered", "Jobs that ended in the last day because no lab answered.", LABELS
        )

    async def refresh(self) -> None:
        """Read the jobs."""
        measured: Mapping[TargetKey, MeasuredTarget] = {}
        targets = [
            TargetKey(repository, target.lab, target.name)
            for repository, results in self._services.config.configured.with_feature(LAB_RESULTS)
            for target in request_targets(results)
        ]
        if targets:
            labs = {target.lab for target in targets}
            measured = await measure_jobs(self._services.connector, sorted(labs), self._services.now())
        # `claim` is not set for a target without claims, and must not keep the value of an earlier refresh.
        self.clear()
        for target in targets:
            self._set(target, measured.get(target) or MeasuredTarget())

    def _set(self, target: TargetKey, measured: MeasuredTarget) -> None:
        labels = (target.repository, target.lab, target.target)
        for state, jobs in measured.states.items():
            self._jobs.labels(*labels, state.value).set(jobs)
        self._oldest.labels(*labels).set(measured.oldest)
        self._repeated.labels(*labels).set(measured.repeated)
        self._unanswered.labels(*labels).set(measured.unanswered)
        if measured.claim is not None:
            self._claim.labels(*labels).set(measured.claim)

    def clear(self) -> None:
        """Remove the values of the last refresh."""
        for gauge in (self._jobs, self._oldest, self._claim, self._repeated, self._unanswered):
            gauge.clear()
