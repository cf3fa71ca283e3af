"""Read from app.yaml what the pages of a repository need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nightjar_formats.model import TARGET_NAME, TargetKey

from bot.github.repositories.in_force import config_in_force
from bot.results.compare.paired import PairedTargets, all_pairs
from bot.results.compare.quarantine import QuarantineOf, quarantine_at
from bot.results.store.lists.run_lists import newest_arrivals
from bot.web.problems import Problem
from handlers.dashboard.shared.texts import NO_SUCH_TARGET
from handlers.results.config import LAB_RESULTS, QUARANTINE, configured_targets

if TYPE_CHECKING:
    from bot.config.model import RepositoryConfig
    from bot.results.settings.results import Results
    from bot.web.page_routes import PageRequest
    from handlers.dashboard.shared.wiring import DashboardParts

TARGET_PATTERN = rf"^[A-Za-z0-9][A-Za-z0-9._-]{{0,99}}/{TARGET_NAME}$"
"""The pattern of a target in an address, as LAB/TARGET."""
MOST_NAMED = 20
"""The most targets that an error text lists; it counts the rest."""


def settings_of(parts: DashboardParts, repository: str) -> tuple[str, RepositoryConfig]:
    """Return a repository's name as in app.yaml, and its settings; raise LookupError if app.yaml does not list it.

    Addresses may have any letter case, as on GitHub, but results are stored under the name of app.yaml.
    """
    name_and_settings = parts.config.configured.name_and_settings(repository)
    if name_and_settings is None:
        raise LookupError(repository)
    return name_and_settings


async def settings_and_target(parts: DashboardParts, request: PageRequest) -> tuple[str, RepositoryConfig]:
    """Return a repository's name and settings in force, after checking the target that the query names.

    Raises LookupError if app.yaml does not list the repository, and `Problem` 400 if it does not list the target and no
    results of it are stored: those of a target that was removed from app.yaml can still be read.
    """
    name, target = request.repository, request.query.target
    settings = await config_in_force(parts.config, parts.records, name)
    if settings is None:
        raise LookupError(name)
    if target and settings.of(LAB_RESULTS) and target not in (configured := configured_targets(settings)):
        lab, _, device = target.partition("/")
        if TargetKey(name, lab, device) not in await request.pages.run(parts.results.store.read, newest_arrivals, name):
            available = ", ".join(configured[:MOST_NAMED]) or "none"
            unlisted = len(configured) - MOST_NAMED
            raise Problem(
                400,
                NO_SUCH_TARGET.format(target=target, known=available, more=f" and {unlisted} more" * (unlisted > 0)),
            )
    return name, settings


def results_of(parts: DashboardParts, repository: str) -> tuple[str, RepositoryConfig, Results]:
    """Return a repository's name, its settings and those of its labs; raise LookupError if it has no `results`."""
    name, settings = settings_of(parts, repository)
    results = settings.of(LAB_RESULTS)
    if results is None:
        raise LookupError(repository)
    return name, settings, results


def quarantine_of(settings: RepositoryConfig, moment: float) -> QuarantineOf:
    """Return a function that returns the quarantine of a target at `moment`, in seconds since 1970."""
    return lambda target: quarantine_at(settings.of(QUARANTINE), target, moment)[0]


def pairs_of(settings: RepositoryConfig) -> dict[str, PairedTargets]:
    """Return the simulators and the device of each target of a repository that has some, as LAB/TARGET."""
    return all_pairs(settings.of(LAB_RESULTS))
