"""The App's installations and their repositories, as GitHub lists them: one request for each hundred of either.

https://docs.github.com/en/rest/apps/apps#list-installations-for-the-authenticated-app
https://docs.github.com/en/rest/apps/installations#list-repositories-accessible-to-the-app-installation
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from cachetools import TTLCache

from bot.core.events import Payload
from bot.core.parts import PartKey
from bot.core.single_flight import SingleFlight
from bot.github.errors import TooManyPages
from bot.github.repositories.privacy import is_called_public
from bot.github.transport.pages import PER_PAGE

if TYPE_CHECKING:
    from bot.github.app import GitHubApp

FRESH_SECONDS = 300.0
"""Seconds for which a list is valid for callers that don't need a new one."""
MOST_INSTALLATIONS = 10_000
"""Installations whose repositories are cached, the most recently listed ones."""
MOST_PAGES = 1_000
"""Pages of one list, of a hundred each."""
INSTALLATIONS = "/app/installations"
REPOSITORIES = "/installation/repositories"
PAGE = f"{REPOSITORIES}?per_page={PER_PAGE}&page={{page}}"
AT_ONCE = 10
"""Pages that a process reads at the same time, of the 100 requests that GitHub allows."""
SOON = 30
"""Pages of one list that are read as fast as GitHub answers."""


@dataclass(frozen=True, slots=True)
class ListedInstallation:
    """An installation of the App on an account. `permissions` are those that it grants, with their levels.

    `suspended_by` is the login of the person who suspended it, empty if it is not suspended or GitHub names nobody.
    """

    id: int
    account: str
    permissions: Mapping[str, str]
    suspended: bool
    suspended_by: str

    @classmethod
    def of(cls, item: Payload) -> Self:
        """Read an item of the list. Raises `PayloadError`."""
        permissions = item.at("permissions")
        return cls(
            id=item.integer("id"),
            account=item.text("account", "login"),
            permissions={name: permissions.string(name) for name in permissions.raw},
            suspended=item.has("suspended_at"),
            suspended_by=item.text("suspended_by", "login"),
        )


@dataclass(frozen=True, slots=True)
class ListedRepository:
    """A repository that an installation includes, by its name on GitHub now. `public`: anybody may read it.

    `pushed_at` is the time of the newest push to any branch, as GitHub writes it.
    """

    id: int
    full_name: str
    public: bool
    archived: bool
    default_branch: str = field(default="", compare=False)
    pushed_at: str = field(default="", compare=False)

    @classmethod
    def of(cls, item: Payload) -> Self:
        """Read an item of the list. Raises `PayloadError`."""
        return cls(
            id=item.integer("id"),
            full_name=item.string("full_name"),
            public=is_called_public(item),
            archived=item.flag("archived"),
            default_branch=item.text("default_branch"),
            pushed_at=item.text("pushed_at"),
        )


class InstalledRepositories:
    """Lists installations and their repositories. `clock` counts seconds from any start, `soon` is `SOON`.

    All methods raise the errors of the GitHub client. Those with `repositories` also raise `NotInstalled` for an
    installation that was removed, and `AccessPaused` for one that is suspended.
    """

    def __init__(self, app: GitHubApp, clock: Callable[[], float] = time.monotonic, soon: int = SOON) -> None:
        self._app = app
        self._soon = soon
        self.accounts: dict[int, str] = {}
        """The account of each installation in the last list, however old it is."""
        self._installations: TTLCache[None, tuple[ListedInstallation, ...]] = TTLCache(1, FRESH_SECONDS, clock)
        self._repositories: TTLCache[int, tuple[ListedRepository, ...]] = TTLCache(
            MOST_INSTALLATIONS, FRESH_SECONDS, clock
        )
        self._installation_flights: SingleFlight[None, tuple[ListedInstallation, ...]] = SingleFlight()
        self._repository_flights: SingleFlight[int, tuple[ListedRepository, ...]] = SingleFlight()
        self._at_once = asyncio.Semaphore(AT_ONCE)

    async def installations(self) -> Sequence[ListedInstallation]:
        """Return all installations of the App, from a list of the last five minutes if there is one."""
        cached = self._installations.get(None)
        return cached if cached is not None else await self._installation_flights.do(None, self.read_installations)

    async def repositories_of(self, installation: int) -> Sequence[ListedRepository]:
        """Return the repositories of an installation, from a list of the last five minutes if there is one."""
        cached = self._repositories.get(installation)
        if cached is not None:
            return cached
        return await self._repository_flights.do(installation, lambda: self.read_repositories(installation))

    async def read_installations(self) -> tuple[ListedInstallation, ...]:
        """Ask GitHub for all installations of the App now."""
        async with aclosing(self._app.as_app().getiter(INSTALLATIONS, max_pages=MOST_PAGES)) as items:
            listed = tuple([ListedInstallation.of(Payload(item, "installation")) async for item in items])
        for installation in listed:
            self._app.note_suspension(installation.id, suspended=installation.suspended)
        self._installations[None] = listed
        self.accounts = {installation.id: installation.account for installation in listed}
        return listed

    async def read_repositories(self, installation: int) -> tuple[ListedRepository, ...]:
        """Ask GitHub for the repositories of an installation now, with one token for the whole installation.

        The first page says how many there are. Some of the others are read at once, because visitors of `/` may wait
        for them; the rest one after the other, because GitHub limits how many requests there may be in a minute.
        """
        github = self._app.metadata_client(installation)

        async def page(number: int) -> tuple[int, list[ListedRepository]]:
            async with self._at_once:
                answer = Payload(await github.getitem(PAGE, url_vars={"page": str(number)}), "repositories")
            count = -(-answer.integer("total_count") // PER_PAGE)
            if count > MOST_PAGES:
                raise TooManyPages(f"GET {REPOSITORIES}: more than {MOST_PAGES} pages")
            return count, [ListedRepository.of(item) for item in answer.items("repositories")]

        read = [await page(1)]
        read += await asyncio.gather(*map(page, range(2, min(read[0][0], self._soon) + 1)))
        # There may be more by now.
        while len(read) < read[-1][0]:
            read.append(await page(len(read) + 1))
        listed = tuple(repository for _, repositories in read for repository in repositories)
        self._repositories[installation] = listed
        return listed


INSTALLED = PartKey[InstalledRepositories]("installed repositories")
