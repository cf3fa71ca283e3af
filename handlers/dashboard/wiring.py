"""What the pages read from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.config.environment import SETTINGS
from bot.results.service import RESULTS

if TYPE_CHECKING:
    from bot.config import Config
    from bot.engine.records import Records
    from bot.feature import Services
    from bot.results.service import ResultsService
    from bot.results.store.store import ResultsStore


@dataclass(frozen=True, slots=True)
class DashboardParts:
    """What pages read: `now` gives seconds since 1970, `github` is the address of GitHub's own pages."""

    config: Config
    records: Records
    results: ResultsService
    now: Callable[[], float]
    github: str

    @property
    def store(self) -> ResultsStore:
        """The store of results; it blocks, so ask it in `PageRequest.pages.run`."""
        return self.results.store

    @staticmethod
    def of(services: Services) -> DashboardParts:
        """Return the parts of a process."""
        github = pages_of_github(services.part(SETTINGS).api_url)
        return DashboardParts(services.config, services.records, services.part(RESULTS), services.now, github)


def pages_of_github(api_url: str) -> str:
    """Return where GitHub's pages are, by the address of its API: https://api.github.com, or https://HOST/api/v3."""
    return api_url.rstrip("/").removesuffix("/api/v3").replace("//api.github.com", "//github.com")
