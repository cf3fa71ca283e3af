"""The feature `repository_file`: a repository's own settings in `.github/nightjar.yaml`, and their faults."""

from __future__ import annotations

from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Gauge

from bot.feature import Feature, RecurringWork, Services
from bot.github.repositories.in_force import REPOSITORY_FILE, file_faults
from bot.github.repositories.installed import INSTALLED
from handlers.repository_file import handler
from handlers.repository_file.effects import StoreRepositoryFile
from handlers.repository_file.records import FILE_SCAN, LAST_SCANS
from handlers.repository_file.sweep import FILE_FOUND, HALF_HOURLY, RepositoryFileSweep


class FileFaults:
    """The gauge of faults in the settings files of repositories."""

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


def timers(services: Services) -> Sequence[RecurringWork]:
    """Return the sweep, if the file of any repository is read."""
    sweep = RepositoryFileSweep(
        services.config,
        services.records,
        announce_event=services.announce,
        github_for=services.github_for,
        installed=lambda: services.part(INSTALLED),
        clock=services.now,
    )
    return [RecurringWork("repository-files", HALF_HOURLY, sweep.sweep, sweep.has_work)] if sweep.is_needed else []


FEATURE = Feature(
    name="repository_file",
    events=(FILE_FOUND,),
    records=(REPOSITORY_FILE, LAST_SCANS, FILE_SCAN),
    router=handler.router,
    effects=(StoreRepositoryFile,),
    timers=timers,
    metrics=FileFaults,
    titles={
        "repository-file": "The repository's configuration",
        "repository-file-check": "The repository's configuration",
        "repository-file-again": "The repository's configuration",
    },
)
