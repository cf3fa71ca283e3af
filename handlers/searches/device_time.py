"""Count how long devices worked for searches."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, Counter

from bot.core.parts import PartKey

if TYPE_CHECKING:
    from bot.feature import Services
    from handlers.searches.records import AskedRun


class DeviceTime:
    """The device time of searches that this process has stored."""

    def __init__(self) -> None:
        self._counter = Counter(
            "nightjar_search_device_seconds",
            "Seconds that devices worked for searches for a culprit.",
            ["repository", "lab", "target"],
            registry=None,
        )

    def measure(self, registry: CollectorRegistry) -> None:
        """Add the metric to a registry."""
        registry.register(self._counter)

    def add(self, repository: str, old_runs: Iterable[AskedRun], runs: Iterable[AskedRun]) -> None:
        """Count the time of runs that the same runs did not have before."""
        counted = _seconds(old_runs)
        for target, seconds in _seconds(runs).items():
            lab, _, name = target.partition("/")
            self._counter.labels(repository, lab, name).inc(max(0.0, seconds - counted.get(target, 0.0)))


class DeviceTimeMetrics:
    """Publishes the device time, for which nothing is read from the database."""

    def __init__(self, services: Services, registry: CollectorRegistry) -> None:
        services.part(DEVICE_TIME).measure(registry)

    async def refresh(self) -> None:
        """Do nothing."""

    def clear(self) -> None:
        """Do nothing: what this process has counted stays true."""


def _seconds(runs: Iterable[AskedRun]) -> dict[str, float]:
    totals = dict[str, float]()
    for run in runs:
        totals[run.target] = totals.get(run.target, 0.0) + run.seconds
    return totals


DEVICE_TIME = PartKey[DeviceTime]("search-device-time")
