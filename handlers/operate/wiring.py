"""Collect the parts of the process that the pages of operators read from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bot.config.environment import SETTINGS
from bot.config.newest import NEWEST_CONFIG
from bot.core.health import HEALTH_ROUNDS
from bot.core.metrics import METRICS
from bot.core.recent_log import RECENT_LOG, RecentLog
from bot.core.redaction import Redactor, cut
from bot.engine.service import ENGINE
from bot.github.repositories.installed import INSTALLED

if TYPE_CHECKING:
    from bot.config import Config
    from bot.config.newest import NewestConfig
    from bot.core.health import HealthRounds
    from bot.core.metrics import Metrics
    from bot.engine.jobs.journal import Journal
    from bot.engine.records import Records
    from bot.engine.service import Engine
    from bot.feature import Services
    from bot.github.repositories.installed import InstalledRepositories


@dataclass(frozen=True, slots=True)
class OperateParts:
    """The parts that pages read from: `clock` returns seconds since 1970, `redact` removes secrets from a text."""

    config: Config
    newest_config: NewestConfig
    engine: Engine
    journal: Journal
    records: Records
    metrics: Metrics
    log: RecentLog
    clock: Callable[[], float]
    redact: Callable[[str], str]
    github: str
    """The address of GitHub's own pages."""
    health: HealthRounds
    installed: InstalledRepositories

    @staticmethod
    def of(services: Services) -> OperateParts:
        """Take the parts from the services of the process."""
        settings = services.part(SETTINGS)
        return OperateParts(
            services.config,
            services.part(NEWEST_CONFIG),
            services.part(ENGINE),
            services.journal,
            services.records,
            services.part(METRICS),
            RECENT_LOG,
            services.now,
            Redactor(settings.secrets()).text,
            settings.github_url,
            services.part(HEALTH_ROUNDS),
            services.part(INSTALLED),
        )

    def shown(self, text: str, most: int) -> str:
        """Remove secrets from a text, then cut it to `most` characters."""
        return cut(text, most, self.redact)
