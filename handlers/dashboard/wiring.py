"""What the pages read from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.config.environment import SETTINGS
from bot.core.redaction import Redactor
from bot.results.service import RESULTS

if TYPE_CHECKING:
    from bot.config import Config
    from bot.config.model import RepositoryConfig
    from bot.engine.journal import Journal
    from bot.engine.records import Records
    from bot.feature import Services
    from bot.results.service import ResultsService
    from bot.results.store.store import ResultsStore

MOMENT_SECONDS = 300.0
"""How late pages say that something is late: what they say about time is in hours."""


@dataclass(frozen=True, slots=True)
class DashboardParts:
    """What pages read: `now` gives seconds since 1970, `github` is the address of GitHub's own pages.

    `redact` removes secrets from a text of the audit log.
    """

    config: Config
    records: Records
    results: ResultsService
    now: Callable[[], float]
    journal: Journal
    redact: Callable[[str], str]
    github: str = "https://github.com"

    def moment(self) -> float:
        """Return the moment that pages are about, which moves on every few minutes.

        So what they say about time, such as that a result is late, is the same for everybody until then.
        """
        now = self.now()
        return now - now % MOMENT_SECONDS

    @property
    def store(self) -> ResultsStore:
        """The store of results; it blocks, so ask it in `PageRequest.pages.run`."""
        return self.results.store

    def named(self, repository: str) -> tuple[str, RepositoryConfig] | None:
        """Return a repository's name as app.yaml has it, and its settings; None where app.yaml does not list it.

        GitHub accepts any letter case, and the results are stored under that name.
        """
        settings = self.config.repository(repository)
        if settings is None:
            return None
        return next(name for name in self.config.repositories if name.lower() == repository.lower()), settings

    @staticmethod
    def of(services: Services) -> DashboardParts:
        """Return the parts of a process."""
        settings = services.part(SETTINGS)
        return DashboardParts(
            services.config,
            services.records,
            services.part(RESULTS),
            services.now,
            services.journal,
            Redactor(settings.secrets()).text,
            settings.github_url,
        )
