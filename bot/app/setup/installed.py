"""Where the App is installed, and the app.yaml for it."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass
from itertools import islice

from bot.app.setup.addresses import WEBHOOK
from bot.app.setup.texts import CONFIG_HEADER, MORE_REPOSITORIES
from bot.config.types import REPOSITORY_NAME
from bot.core.events import Payload
from bot.core.listing import counted
from bot.core.patterns import Pattern
from bot.core.urls import linkable
from bot.github.app import GitHubApp

MOST_REPOSITORIES = 50
"""Repositories in the app.yaml that the page offers; nobody reads a longer list."""
MOST_INSTALLATIONS = 20
"""Installations whose repositories are listed, with one request or more for each."""
_NAME = Pattern(REPOSITORY_NAME)
INSTALLED_REPOSITORIES = "/installation/repositories"
"""The repositories of a token: https://docs.github.com/rest/apps/installations"""


@dataclass(frozen=True, slots=True)
class InstalledApp:
    """The App on GitHub: its page, its webhook's address, and the repositories that it is installed on.

    `page` is empty if GitHub says no address that may be linked.
    """

    slug: str
    page: str
    public_url: str
    repositories: tuple[str, ...]
    more: int = 0


async def read_installed(app: GitHubApp) -> InstalledApp:
    """Ask GitHub. Raises what the client raises."""
    own_app = await app.read_app()
    hook = Payload(await app.as_app().getitem("/app/hook/config"), "hook").text("url")
    names: list[str] = []
    async with aclosing(app.as_app().getiter("/app/installations")) as installations:
        active = [installation["id"] async for installation in installations if not installation.get("suspended_at")]
    for installation_id in islice(active, MOST_INSTALLATIONS):
        async with aclosing(app.metadata_client(installation_id).getiter(INSTALLED_REPOSITORIES)) as repositories:
            names += [Payload(repository, "repository").string("full_name") async for repository in repositories]
    names = sorted({name for name in names if _NAME.fullmatch(name)}, key=str.lower)
    return InstalledApp(
        slug=own_app.string("slug"),
        page=linkable(own_app.text("html_url")),
        public_url=hook.removesuffix(WEBHOOK),
        repositories=tuple(names[:MOST_REPOSITORIES]),
        more=max(0, len(names) - MOST_REPOSITORIES),
    )


def config_text(public_url: str, repositories: Sequence[str], more: int = 0) -> str:
    """Return the smallest app.yaml for these repositories."""
    lines = [f"public_url: {public_url}", "", "repositories:", *(f"  {name}:" for name in repositories)]
    rest = MORE_REPOSITORIES.format(repositories=counted(more, "more repository", "more repositories")) if more else ""
    return CONFIG_HEADER + "\n".join(lines) + "\n" + rest
