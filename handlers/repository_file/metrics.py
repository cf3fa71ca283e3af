"""The gauge of repositories' own settings: how many faults each file has."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Gauge

from bot.feature import Services
from bot.github.in_force import file_faults


class FileFaults:
    """The gauge."""

    def __init__(self, services: Services, registry: CollectorRegistry) -> None:
        self._services = services
        self._faults = Gauge(
            "nightjar_repository_file_faults",
            "Errors in .github/nightjar.yaml on the default branch.",
            ["repository"],
            registry=registry,
        )

    async def refresh(self) -> None:
        """Read the records."""
        faults = await file_faults(self._services.config, self._services.records)
        # Only after the read, which waits: a scrape in between would find no values.
        self.clear()
        for repository, count in faults.items():
            self._faults.labels(repository).set(count)

    def clear(self) -> None:
        """Remove all."""
        self._faults.clear()
