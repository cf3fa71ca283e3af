"""Where the App is installed: a few requests for each hundred installations and repositories, not some for each one.

A check of all installations takes one request a hundred. Their repositories, a hundred a request, are listed at the
start and once a day: webhooks report changes, and GitHub sends the ones that were missed again. What each server learns
here saves the clients of these repositories their own look-ups and tokens (`GitHubApp.note_listed`).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from gidgethub import BadRequest

from bot.app.doctor.judge import InstallationState
from bot.config.repositories import is_pattern
from bot.core.events import Payload
from bot.github.access import InstalledRepository
from bot.github.errors import AccessPaused, NotInstalled, RateLimited, Vanished, is_not_found
from bot.github.repositories.installed import InstalledRepositories, ListedInstallation, ListedRepository
from bot.github.repositories.known import NO_LONGER_OURS

if TYPE_CHECKING:
    from bot.config import Config
    from bot.github.app import GitHubApp
    from bot.github.repositories.known import KnownRepository

INSTALLATIONS_LAST = 3600.0
"""Seconds for which the list of installations is valid if nothing was wrong with any of them."""
REPOSITORIES_LAST = 24 * 3600.0
"""Seconds for which the repositories of an installation are valid if no webhook reported a change."""
MOST_LOOKUPS = 20
"""Repositories of app.yaml without an installation that one check looks for by name, in turns: one renamed with its
owner is found only by name."""
LISTED_SOON = 1_000
"""The most repositories of an installation that is listed again soon after a webhook, in ten requests."""
PATIENCE = 90.0
"""The longest wait in seconds for points of GitHub's limit per minute; after it, the check fails."""
INSTALLATION = "/repos/{owner}/{repo}/installation"
REPOSITORY = "/repos/{+repo}"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Listing:
    """The repositories of an installation by ID, when they were listed, and how often its data had changed by then."""

    repositories: Mapping[int, ListedRepository]
    listed_at: float
    changes: int


class InstallationScan:
    """Finds the installation of each repository of app.yaml. `clock` counts seconds from any start.

    `installed` is what the other parts of the process read too, so that nothing is listed twice.
    """

    def __init__(
        self,
        app: GitHubApp,
        config: Config,
        clock: Callable[[], float] = time.monotonic,
        installed: InstalledRepositories | None = None,
    ) -> None:
        self._app = app
        self._config = config
        self._clock = clock
        self._reader = installed or InstalledRepositories(app, clock)
        self._installations: Sequence[ListedInstallation] = ()
        self._installations_read_at: float | None = None
        self._listings: dict[int, _Listing] = {}
        self._unlisted: dict[str, InstallationState] = {}
        """The repositories of app.yaml that no list has, the one whose look-up is longest ago first."""

    async def states(self, stored: Iterable[KnownRepository], *, idle: bool = False) -> list[InstallationState]:
        """Return the installation of each repository of app.yaml; `stored` are the repositories that the bot has seen.

        With `idle`, use the lists of earlier calls while they are valid. Raises the errors of the GitHub client.
        """
        # A name may have had several repositories; the one that still has it comes last.
        by_turn = sorted(stored, key=lambda repository: repository.away not in NO_LONGER_OURS)
        by_name = {repository.name.lower(): repository for repository in by_turn}
        if not idle or not self._is_recent():
            self._installations = await self._patiently(self._reader.read_installations)
            self._installations_read_at = self._clock()
        by_account = {installation.account.lower(): installation for installation in self._installations}
        names = list(self._config.repositories)
        owners = {_owner(name) for name in (*names, *_full_names(by_name))} | self._config.configured.owners
        await self._list_all(by_account, owners, idle=idle)
        states = {name: self._state(name, by_name.get(name.lower()), by_account) for name in names}
        await self._look_up_all([name for name in names if states[name].permissions is None], by_name, idle=idle)
        states |= self._unlisted
        for state in states.values():
            if state.listed is not None and state.listed.id in self._listed_in(state.installation):
                self._tell_app(state.repository, state.installation, state.listed)
        return list(states.values())

    @property
    def uninstalled_patterns(self) -> list[str]:
        """Return the patterns of app.yaml whose owners have no installation, by the last list of installations."""
        accounts = {installation.account.lower() for installation in self._installations}
        patterns = [entry for entry in self._config.configured.entries if is_pattern(entry)]
        return [pattern for pattern in patterns if _owner(pattern) not in accounts]

    def listed(self, repository_id: int) -> ListedRepository | None:
        """Return the repository with an ID as GitHub last listed it, None if no list has it."""
        listings = (listing.repositories.get(repository_id) for listing in self._listings.values())
        return next((repository for repository in listings if repository is not None), None)

    @property
    def is_outdated(self) -> bool:
        """Whether a webhook has reported a change of an installation whose list is short.

        Until it is listed again, the clients of its repositories have no token in common.
        """
        return any(
            self._app.changes(number) != listing.changes and len(listing.repositories) <= LISTED_SOON
            for number, listing in self._listings.items()
        )

    def _is_recent(self) -> bool:
        """Return whether the list of installations is valid, and shows nothing that an operator has to fix."""
        read_at = self._installations_read_at
        is_recent = read_at is not None and self._clock() - read_at < INSTALLATIONS_LAST
        is_current = all(self._app.changes(number) == listing.changes for number, listing in self._listings.items())
        is_fine = not self._unlisted and not any(installation.suspended for installation in self._installations)
        return is_recent and is_current and is_fine and self._app.suspended is None

    async def _list_all(self, by_account: Mapping[str, ListedInstallation], owners: Set[str], *, idle: bool) -> None:
        """List the repositories of the owners' installations, and again those of installations found by a name."""
        active = {
            installation.id: account for account, installation in by_account.items() if not installation.suspended
        }
        for number in self._listings.keys() - active.keys():
            del self._listings[number]
        numbers = [number for number, account in active.items() if account in owners or number in self._listings]
        for number in numbers:
            if not idle or self._is_due(number):
                await self._list(number)

    async def _look_up_all(self, names: Sequence[str], by_name: Mapping[str, KnownRepository], *, idle: bool) -> None:
        """Look for repositories that no list has: new ones, and with `idle` a few of the others, in turns."""
        earlier = [name for name in self._unlisted if name in names]
        self._unlisted = {name: self._unlisted[name] for name in earlier}
        new = [name for name in names if name not in self._unlisted]
        for name in (*new, *(earlier[:MOST_LOOKUPS] if idle else earlier)):
            self._unlisted.pop(name, None)
            self._unlisted[name] = await self._look_up(name, by_name.get(name.lower()))

    def _is_due(self, installation: int) -> bool:
        listing = self._listings.get(installation)
        if listing is None or listing.changes != self._app.changes(installation):
            return True
        return self._clock() - listing.listed_at >= REPOSITORIES_LAST

    async def _list(self, installation: int) -> None:
        changes = self._app.changes(installation)
        try:
            repositories = await self._patiently(lambda: self._reader.read_repositories(installation))
        except (NotInstalled, AccessPaused):
            # It was removed or suspended since the list of installations was read.
            self._listings.pop(installation, None)
            return
        by_id = {repository.id: repository for repository in repositories}
        self._listings[installation] = _Listing(by_id, self._clock(), changes)
        # A scan of many installations takes minutes, for whose clients the first ones are listed already. A repository
        # that matches a pattern may be new to this process: its timers begin before the next scan.
        for repository in repositories:
            if self._config.configured.entry_for(repository.full_name) is not None:
                self._tell_app(repository.full_name, installation, repository)
                self._app.note_shown(repository.id)

    def _state(
        self, name: str, stored: KnownRepository | None, by_account: Mapping[str, ListedInstallation]
    ) -> InstallationState:
        """Return the state of a repository by the lists: by its ID if the bot knows it, then by its name."""
        owners = [_owner(stored.full_name)] if stored is not None else []
        for owner in (*owners, _owner(name)):
            installation = by_account.get(owner)
            if installation is not None and installation.suspended:
                return _state_of(name, installation)
            listed = self._listed_in(installation.id) if installation is not None else {}
            if installation is not None and stored is not None and stored.id in listed:
                return _state_of(name, installation, listed[stored.id])
        # The owner of the name comes last, so this is its installation.
        for repository in listed.values():
            if installation is not None and repository.full_name.lower() == name.lower():
                return _state_of(name, installation, repository)
        return InstallationState(name)

    def _listed_in(self, installation: int) -> Mapping[int, ListedRepository]:
        listing = self._listings.get(installation)
        return listing.repositories if listing is not None else {}

    async def _look_up(self, name: str, stored: KnownRepository | None) -> InstallationState:
        """Ask GitHub for one repository: it also finds one under the old name of the repository, or of its owner."""
        owner, _, repo = name.partition("/")
        github = self._app.as_app()
        try:
            answer = await self._patiently(lambda: github.getitem(INSTALLATION, {"owner": owner, "repo": repo}))
        except (BadRequest, Vanished) as error:
            # Other code asks again if something that existed a moment ago gets a 404; here GitHub's answer is the
            # finding.
            if not (isinstance(error, Vanished) or is_not_found(error)):
                raise
            return InstallationState(name)
        installation = ListedInstallation.of(Payload(answer, "installation"))
        self._app.note_suspension(installation.id, suspended=installation.suspended)
        if installation.suspended:
            return _state_of(name, installation)
        if installation.id not in self._listings:
            await self._list(installation.id)
        listed = self._listed_in(installation.id)
        if stored is not None and stored.id in listed:
            return _state_of(name, installation, listed[stored.id])
        metadata = self._app.metadata_client(installation.id)
        description = Payload(await self._patiently(lambda: metadata.getitem(REPOSITORY, {"repo": name})), "repository")
        return _state_of(name, installation, ListedRepository.of(description))

    def _tell_app(self, name: str, installation: int, repository: ListedRepository) -> None:
        """Tell the App's clients where a listed repository is; `name` is the one in app.yaml."""
        place, changes = InstalledRepository(installation, repository.id), self._listings[installation].changes
        self._app.note_listed(name, place, repository.full_name, changes)

    async def _patiently(self, request: Callable[[], Awaitable[T]]) -> T:
        """Make a request; wait for points, which sweeps of many installations use up for a minute."""
        while True:
            try:
                return await request()
            except RateLimited as error:
                if error.ends_in > PATIENCE:
                    raise
                # Its few requests need not wait behind those of thousands of timers.
                await self._app.as_app().sleep(error.ends_in)


def _owner(full_name: str) -> str:
    return full_name.partition("/")[0].lower()


def _full_names(by_name: Mapping[str, KnownRepository]) -> Iterator[str]:
    return (repository.full_name for repository in by_name.values())


def _state_of(name: str, installation: ListedInstallation, listed: ListedRepository | None = None) -> InstallationState:
    return InstallationState(
        name,
        installation.permissions,
        suspended=installation.suspended,
        installation=installation.id,
        suspended_by=installation.suspended_by,
        listed=listed,
    )
