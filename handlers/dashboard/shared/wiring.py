"""Collect the parts of the process that the pages read from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.config.environment import SETTINGS
from bot.core.redaction import Redactor
from bot.feature import HANDLER_TITLES
from bot.github.repositories.in_force import config_in_force
from bot.results.service import RESULTS
from bot.web.help import COMMAND_LIST
from handlers.device_tests.store import JobStore

if TYPE_CHECKING:
    from bot.config import Config
    from bot.config.model import RepositoryConfig
    from bot.engine.jobs.journal import Journal
    from bot.engine.records import Records
    from bot.feature import Services
    from bot.results.service import ResultsService
    from bot.web.help import ListCommands

MOMENT_SECONDS = 300.0
"""Seconds for which `moment` stays the same, so that pages can be cached; texts about time count hours, not minutes."""


@dataclass(frozen=True, slots=True)
class DashboardParts:
    """The parts that pages read from.

    `clock` returns seconds since 1970, `github` is the address of GitHub's own pages.
    `redact` removes secrets from a text of the audit log, `list_commands` gives the commands of a repository.
    """

    config: Config
    records: Records
    results: ResultsService
    clock: Callable[[], float]
    journal: Journal
    redact: Callable[[str], str]
    list_commands: ListCommands
    titles: Mapping[str, str]
    """What each handler is about, by its name."""
    github: str = "https://github.com"
    public_url: str = ""
    """The address of these pages without a slash at its end; empty if app.yaml has none."""

    def moment(self) -> float:
        """Return the time that pages use as now, rounded down to `MOMENT_SECONDS`.

        So statements about time, such as that a result is late, stay the same for that long, and all readers share one
        cached page.
        """
        seconds = self.clock()
        return seconds - seconds % MOMENT_SECONDS

    @property
    def jobs(self) -> JobStore:
        """Return the store of device tests, to read it."""
        return JobStore(self.records.connector, self.clock)

    async def in_force(self, name: str, settings: RepositoryConfig) -> RepositoryConfig:
        """Return the settings of a repository with those of its own file, such as quarantined tests; reads one record.

        A cached page shows a change of that file once `moment` has changed.
        """
        return await config_in_force(self.config, self.records, name) or settings

    @staticmethod
    def of(services: Services) -> DashboardParts:
        """Take the parts from the services of the process."""
        settings = services.part(SETTINGS)
        return DashboardParts(
            services.config,
            services.records,
            services.part(RESULTS),
            services.now,
            services.journal,
            Redactor(settings.secrets()).text,
            services.part(COMMAND_LIST),
            services.part(HANDLER_TITLES),
            settings.github_url,
            (services.config.public_url or "").rstrip("/"),
        )
