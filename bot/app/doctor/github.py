"""The checks that ask GitHub: the App, its key, its permissions, events and webhook, and where it is installed."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING

from gidgethub import BadRequest, GitHubException

from bot.app.doctor.findings import Check, Finding
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
from bot.core.payload import Payload
from bot.github.access import InstalledRepository
from bot.github.errors import AppRefused, NoSuchApp, NotInstalled, Vanished, is_not_found
from bot.github.repositories.known import KnownRepository, LeftAlone, Repositories

if TYPE_CHECKING:
    from bot.config import Config
    from bot.github.app import GitHubApp

DELIVERIES = "/app/hook/deliveries{?per_page}"
INSTALLATION = "/repos/{owner}/{repo}/installation"
INSTALLED_REPOSITORIES = "/installation/repositories"
"""The repositories of a token: https://docs.github.com/rest/apps/installations"""


async def check_github(app: GitHubApp, config: Config, repositories: Repositories | None) -> list[Finding]:
    """Return the findings of the checks that ask GitHub. A check that depends on a failed one is left out.

    With `repositories`, store there the current name of each repository, and whether it is archived.
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
        installed = [await _installed(app, repository) for repository in config.repositories]
        hook = await _hook(app)
        if repositories is not None:
            for state in installed:
                if state.suspended:
                    await _note_suspended(state.repository, repositories)
                elif state.permissions is not None:
                    await _refresh_name(app, state.repository, repositories)
    except (TryAgain, GitHubException) as error:
        return [check_clock(app), Finding(Check.APP, GITHUB_UNREACHABLE.format(reason=error), CHECK_API_URL)]
    permissions = description.at("permissions")
    return [
        check_clock(app),
        Finding(Check.APP, APP_OK.format(slug=description.string("slug"), app=description.integer("id"))),
        Finding(Check.KEY, KEY_OK),
        *judge_permissions({name: permissions.string(name) for name in permissions.raw}, installed),
        judge_events([str(event) for event in description.raw.get("events") or ()]),
        *judge_hook(hook, config.public_url),
        *judge_repositories(installed, await repositories.all() if repositories is not None else ()),
    ]


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


async def _installed(app: GitHubApp, repository: str) -> InstallationState:
    owner, _, name = repository.partition("/")
    try:
        description = Payload(await app.as_app().getitem(INSTALLATION, {"owner": owner, "repo": name}), "installation")
    except (BadRequest, Vanished) as error:
        # Other code asks again if something that existed a moment ago gets a 404; here GitHub's answer is the finding.
        if not (isinstance(error, Vanished) or is_not_found(error)):
            raise
        return InstallationState(repository)
    permissions, installation = description.at("permissions"), description.integer("id")
    granted = {key: permissions.string(key) for key in permissions.raw}
    suspended = description.has("suspended_at")
    app.note_suspension(installation, suspended=suspended)
    suspended_by = description.text("suspended_by", "login")
    return InstallationState(
        repository, granted, suspended=suspended, installation=installation, suspended_by=suspended_by
    )


async def _note_suspended(name: str, repositories: Repositories) -> None:
    """Store that the installation of a repository is suspended, in case that its webhook was lost."""
    stored = await repositories.named(name)
    if stored is not None:
        await repositories.see(stored.id, stored.full_name, name=name, away=LeftAlone.SUSPENDED)


async def _refresh_name(app: GitHubApp, name: str, repositories: Repositories) -> None:
    """Store the current name of a repository; GitHub also finds it by an old one."""
    description = Payload(await (await app.reader(name)).getitem("/repos/{+repo}", {"repo": name}), "repository")
    away = LeftAlone.ARCHIVED if description.flag("archived") else LeftAlone.NO
    holder = await repositories.holder(name, description.integer("id"))
    if holder is not None:
        await _refresh_holder(app, holder, repositories)
    await repositories.see(description.integer("id"), description.string("full_name"), name=name, away=away)


async def _refresh_holder(app: GitHubApp, holder: KnownRepository, repositories: Repositories) -> None:
    """Store the new name of a repository whose old name another one has now, or that it was removed."""
    place = InstalledRepository(await app.installation_for(holder.full_name), holder.id)
    try:
        async with aclosing(app.client(place).getiter(INSTALLED_REPOSITORIES)) as listed:
            names = [
                Payload(item, "repository").string("full_name") async for item in listed if item["id"] == holder.id
            ]
    except NotInstalled:
        names = []
    full_name, away = (names[0], None) if names else (holder.full_name, LeftAlone.REMOVED)
    await repositories.see(holder.id, full_name, name=holder.name, away=away)
