"""The checks that ask GitHub: the App, its key, its permissions, events and webhook, and where it is installed."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING

from gidgethub import BadRequest, GitHubException

from bot.app.doctor.findings import Check, Finding
from bot.app.doctor.judge import (
    Hook,
    Installed,
    judge_events,
    judge_hook,
    judge_permissions,
    judge_repositories,
)
from bot.core.errors import TryAgain
from bot.core.payload import Payload
from bot.github.access import Place
from bot.github.errors import AppRefused, NoSuchApp, NotInstalled, Vanished, is_not_found
from bot.github.repositories import ARCHIVED, REMOVED, KnownRepository, Repositories

if TYPE_CHECKING:
    from bot.config import Config
    from bot.github.app import GitHubApp

NOT_ASKED = "GitHub cannot be asked: {reason}"
CHECK_ADDRESS = (
    "check GITHUB_API_URL, and whether this machine reaches it; https://www.githubstatus.com tells of outages"
)
SET_APP_ID = "set GITHUB_APP_ID to the ID on the App's page on GitHub, and GITHUB_API_URL to the GitHub that has it"
SET_KEY = (
    "set GITHUB_APP_ID and GITHUB_PRIVATE_KEY of the same App; a new key is made on the App's page on GitHub under "
    "Private keys"
)
THE_APP = "{slug}, ID {app}"
KEY_IS_FINE = "GitHub accepts it"
CLOCK_IS_FINE = "it agrees with GitHub's"
SYNCHRONISE = "synchronise this machine's clock (NTP)"
DELIVERIES = "/app/hook/deliveries{?per_page}"
INSTALLATION = "/repos/{owner}/{repo}/installation"
OURS = "/installation/repositories"
"""What a token covers: https://docs.github.com/rest/apps/installations"""


async def check_github(app: GitHubApp, config: Config, repositories: Repositories | None) -> list[Finding]:
    """Return what GitHub says, one finding a check. What depends on a check that fails is left out.

    With `repositories`, what GitHub calls each of them now, and whether it is archived, is remembered there.
    """
    try:
        found = await app.read_app()
    except NoSuchApp as error:
        return [check_clock(app), Finding(Check.APP, str(error).partition(":")[0], SET_APP_ID)]
    except AppRefused as error:
        return [check_clock(app), Finding(Check.KEY, str(error).partition(". ")[0], SET_KEY)]
    except (TryAgain, GitHubException) as error:
        return [Finding(Check.APP, NOT_ASKED.format(reason=error), CHECK_ADDRESS)]
    try:
        installed = [await _installed(app, repository) for repository in config.repositories]
        hook = await _hook(app)
        if repositories is not None:
            for one in installed:
                if one.permissions is not None and not one.suspended:
                    await _look_at(app, one.repository, repositories)
    except (TryAgain, GitHubException) as error:
        return [check_clock(app), Finding(Check.APP, NOT_ASKED.format(reason=error), CHECK_ADDRESS)]
    permissions = found.at("permissions")
    return [
        check_clock(app),
        Finding(Check.APP, THE_APP.format(slug=found.string("slug"), app=found.integer("id"))),
        Finding(Check.KEY, KEY_IS_FINE),
        judge_permissions({name: permissions.string(name) for name in permissions.raw}, installed),
        judge_events([str(event) for event in found.raw.get("events") or ()]),
        judge_hook(hook, config.public_url),
        judge_repositories(installed, await repositories.all() if repositories is not None else ()),
    ]


def check_clock(app: GitHubApp) -> Finding:
    """Compare our clock with what GitHub's answers have told."""
    problem = app.clock.problem
    return (
        Finding(Check.CLOCK, problem.partition(";")[0], SYNCHRONISE) if problem else Finding(Check.CLOCK, CLOCK_IS_FINE)
    )


async def _hook(app: GitHubApp) -> Hook:
    """Read how webhooks are delivered. https://docs.github.com/en/rest/apps/webhooks."""
    github = app.as_app()
    config = Payload(await github.getitem("/app/hook/config"), "hook")
    newest = await github.getitem(DELIVERIES, {"per_page": "1"})
    return Hook(
        url=config.text("url"),
        content_type=config.text("content_type"),
        has_secret=config.has("secret"),
        verifies_tls=str(config.raw.get("insecure_ssl", "0")) == "0",
        newest=int(newest[0].get("status_code") or 0) if newest else 0,
    )


async def _installed(app: GitHubApp, repository: str) -> Installed:
    owner, _, name = repository.partition("/")
    try:
        found = Payload(await app.as_app().getitem(INSTALLATION, {"owner": owner, "repo": name}), "installation")
    except (BadRequest, Vanished) as error:
        # What was there a moment ago is asked for again elsewhere; here what GitHub says now is the finding.
        if not is_not_found(error):
            raise
        return Installed(repository, suspended=owner.lower() in await _suspended(app))
    permissions = found.at("permissions")
    granted = {key: permissions.string(key) for key in permissions.raw}
    return Installed(repository, granted, suspended=found.has("suspended_at"))


async def _look_at(app: GitHubApp, name: str, repositories: Repositories) -> None:
    """Remember a repository, which GitHub finds by an old name as well."""
    found = Payload(await (await app.reader(name)).getitem("/repos/{+repo}", {"repo": name}), "repository")
    away = ARCHIVED if found.flag("archived") else ""
    holder = await repositories.holder(name, found.integer("id"))
    if holder is not None:
        await _look_for(app, holder, repositories)
    await repositories.see(found.integer("id"), found.string("full_name"), name=name, away=away)


async def _look_for(app: GitHubApp, holder: KnownRepository, repositories: Repositories) -> None:
    """Remember how a repository is called now whose name another one has on GitHub, or that it is no longer ours."""
    place = Place(await app.installation_for(holder.full_name), holder.id)
    try:
        async with aclosing(app.client(place).getiter(OURS)) as listed:
            names = [Payload(one, "repository").string("full_name") async for one in listed if one["id"] == holder.id]
    except NotInstalled:
        names = []
    full_name, away = (names[0], None) if names else (holder.full_name, REMOVED)
    await repositories.see(holder.id, full_name, name=holder.name, away=away)


async def _suspended(app: GitHubApp) -> Sequence[str]:
    """Return the accounts on which the App is installed and suspended: GitHub hides their repositories from us."""
    async with aclosing(app.as_app().getiter("/app/installations")) as installations:
        return [
            Payload(one, "installation").text("account", "login").lower()
            async for one in installations
            if one.get("suspended_at")
        ]
