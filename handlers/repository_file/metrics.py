"""Measure repositories' own settings: the number of faults in each file."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from bot.feature import Services
from bot.github.repositories.in_force import file_faults


class FileFaults:
    """The gauge of faults."""

    def __init__(self, services: Services, registry: CollectorRegistry) -> None:
        self._services = services
        self._faults = Gauge(
            "nightjar_repository_file_faults",
            "Errors in .github/nightjar.yaml on the default branch.",
            ["repository"],
            registry=registry,
        )

    async def refresh(self) -> None:
        """Set the gauge from the records."""
        faults = await file_faults(self._services.config, self._services.records)
        # Cleared only after the read, which yields to other tasks: a scrape in between would find no values.
        self.clear()
        for repository, count in faults.items():
            self._faults.labels(repository).set(count)

    def clear(self) -> None:
        """Remove all values."""
        self._faults.clear()
