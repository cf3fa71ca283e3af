"""What app.yaml says of a repository, as its pages need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightjar_formats.model import TARGET_NAME

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from bot.config.results import Results
    from handlers.dashboard.wiring import DashboardParts

TARGET_PATTERN = rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,99}}/{TARGET_NAME}$"
"""A target in an address, as LAB/TARGET."""


def settings_of(parts: DashboardParts, repository: str) -> tuple[str, RepositoryConfig]:
    """Return a repository as `DashboardParts.named` does; raise LookupError where app.yaml does not list it."""
    found = parts.named(repository)
    if found is None:
        raise LookupError(repository)
    return found


def results_of(parts: DashboardParts, repository: str) -> tuple[str, RepositoryConfig, Results]:
    """Return what `settings_of` does, and the settings of its labs; raise LookupError where it takes no results."""
    name, settings = settings_of(parts, repository)
    if settings.results is None:
        raise LookupError(repository)
    return name, settings, settings.results


def configured_targets(settings: RepositoryConfig) -> list[str]:
    """Return all targets of a repository, as LAB/TARGET, in the order of app.yaml."""
    labs = settings.results.labs if settings.results else {}
    return [f"{lab}/{target}" for lab, of in labs.items() for target in of.targets]
