"""The feature `repository_file`: a repository's own settings in `.github/nightjar.yaml`."""

from __future__ import annotations

from collections.abc import Sequence

from bot.feature import Feature, RecurringWork, Services
from bot.github.in_force import REPOSITORY_FILE
from handlers.repository_file import handler
from handlers.repository_file.effects import StoreRepositoryFile
from handlers.repository_file.metrics import FileFaults
from handlers.repository_file.sweep import FILE_FOUND, HALF_HOURLY, LAST_SCANS, RepositoryFileSweep


def timers(services: Services) -> Sequence[RecurringWork]:
    """Return the sweep, if the file of any repository is read."""
    sweep = RepositoryFileSweep(
        services.config,
        services.records,
        accept=services.announce,
        github_for=services.github_for,
        now=services.now,
    )
    return [RecurringWork("repository-files", HALF_HOURLY, sweep.sweep)] if sweep.repositories else []


FEATURE = Feature(
    name="repository_file",
    events=(FILE_FOUND,),
    records=(REPOSITORY_FILE, LAST_SCANS),
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
