"""The checks that ask GitHub: the App, its key, its permissions, events and webhook, and where it is installed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from gidgethub import GitHubException

from bot.app.doctor.findings import Check, Finding
from bot.app.doctor.installed import InstallationScan
from bot.app.doctor.judge import (
    InstallationState,
    WebhookConfig,
    judge_events,
    judge_hook,
    judge_permissions,
    judge_repositories,
)
from bot.app.doctor.texts import (
    APP_OK,
    CHECK_API_URL,
    CLOCK_OK,
    GITHUB_UNREACHABLE,
    KEY_OK,
    SET_APP_ID,
    SET_KEY,
    SYNCHRONIZE_CLOCK,
)
from bot.core.errors import TryAgain
from bot.core.events import Payload
from bot.github.errors import AppRefused, NoSuchApp
from bot.github.repositories.installed import ListedRepository
from bot.github.repositories.known import NO_LONGER_OURS, KnownRepository, LeftAlone, Repositories

if TYPE_CHECKING:
    from bot.config import Config
    from bot.github.app import GitHubApp

DELIVERIES = "/app/hook/deliveries{?per_page}"


async def check_github(
    app: GitHubApp, config: Config, scan: InstallationScan, repositories: Repositories | None, *, idle: bool = False
) -> list[Finding]:
    """Return the findings of the checks that ask GitHub. A check that depends on a failed one is left out.

    With `repositories`, store there the current name of each repository, and whether it is archived. With `idle`, use
    what `scan` found in earlier checks while it is valid.
    """
    try:
        description = await app.read_app()
    except NoSuchApp as error:
        return [check_clock(app), Finding(Check.APP, str(error).partition(":")[0], SET_APP_ID)]
    except AppRefused as error:
        return [check_clock(app), Finding(Check.KEY, str(error).partition(". ")[0], SET_KEY)]
    except (TryAgain, GitHubException) as error:
        return [Finding(Check.APP, GITHUB_UNREACHABLE.format(reason=error), CHECK_API_URL)]
    try:
        known_repositories = await repositories.all() if repositories is not None else []
        installed = await scan.states(known_repositories, idle=idle)
        hook = await _hook(app)
        if repositories is not None:
            await _store_states(installed, known_repositories, scan, repositories)
    except (TryAgain, GitHubException) as error:
        return [check_clock(app), Finding(Check.APP, GITHUB_UNREACHABLE.format(reason=error), CHECK_API_URL)]
    permissions = description.at("permissions")
    stored = await repositories.all() if repositories is not None else []
    return [
        check_clock(app),
        Finding(Check.APP, APP_OK.format(slug=description.string("slug"), app=description.integer("id"))),
        Finding(Check.KEY, KEY_OK),
        *judge_permissions({name: permissions.string(name) for name in permissions.raw}, installed),
        judge_events([str(event) for event in description.raw.get("events") or ()]),
        *judge_hook(hook, config.public_url),
        *judge_repositories(
            [state for state in installed if _is_named(config, state.repository) or state.listed is not None],
            [repository for repository in stored if _is_named(config, repository.name)],
            scan.uninstalled_patterns,
        ),
    ]


def _is_named(config: Config, repository: str) -> bool:
    """Return whether app.yaml names a repository: what a pattern matches may come and go without a change of it."""
    return config.configured.names(repository)


def check_clock(app: GitHubApp) -> Finding:
    """Compare our clock with the Date headers of GitHub's answers."""
    problem = app.clock.problem
    return (
        Finding(Check.CLOCK, problem.partition(";")[0], SYNCHRONIZE_CLOCK)
        if problem
        else Finding(Check.CLOCK, CLOCK_OK)
    )


async def _hook(app: GitHubApp) -> WebhookConfig:
    """Read how webhooks are delivered. https://docs.github.com/en/rest/apps/webhooks."""
    github = app.as_app()
    config = Payload(await github.getitem("/app/hook/config"), "hook")
    newest = await github.getitem(DELIVERIES, {"per_page": "1"})
    return WebhookConfig(
        url=config.text("url"),
        content_type=config.text("content_type"),
        # GitHub shows asterisks for a secret, and omits the member if there is none.
        has_secret=config.has("secret"),
        # GitHub documents it as text or number.
        verifies_tls=str(config.raw.get("insecure_ssl", "0")) == "0",
        newest=int(newest[0].get("status_code") or 0) if newest else 0,
    )


async def _store_states(
    states: Iterable[InstallationState],
    known_repositories: Sequence[KnownRepository],
    scan: InstallationScan,
    stored: Repositories,
) -> None:
    """Store the names and states of repositories that differ from the stored ones, in case that a webhook was lost."""
    by_id = {repository.id: repository for repository in known_repositories}
    by_name = {repository.name.lower(): repository for repository in known_repositories}
    for state in states:
        if state.suspended:
            repository = by_name.get(state.repository.lower())
            if repository is not None and repository.away is not LeftAlone.SUSPENDED:
                await stored.see(repository.id, repository.full_name, name=state.repository, away=LeftAlone.SUSPENDED)
        elif state.listed is not None:
            away = LeftAlone.ARCHIVED if state.listed.archived else LeftAlone.NO
            repository = by_id.get(state.listed.id)
            if repository is None or (repository.full_name, repository.away) != (state.listed.full_name, away):
                await _store_listed(state.repository, state.listed, away, known_repositories, scan, stored)


async def _store_listed(
    name: str,
    listed: ListedRepository,
    away: LeftAlone,
    known_repositories: Iterable[KnownRepository],
    scan: InstallationScan,
    stored: Repositories,
) -> None:
    """Store a repository under its name in app.yaml, and what has become of the one that had the name before."""
    for holder in known_repositories:
        if holder.id != listed.id and holder.name.lower() == name.lower() and holder.away not in NO_LONGER_OURS:
            renamed = scan.listed(holder.id)
            if renamed is None:
                await stored.see(holder.id, holder.full_name, name=holder.name, away=LeftAlone.REMOVED)
            else:
                await stored.see(holder.id, renamed.full_name, name=holder.name)
    await stored.see(listed.id, listed.full_name, name=name, away=away)
