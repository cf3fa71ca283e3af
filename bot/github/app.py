"""The App: it makes installation tokens and clients, and knows its own identity."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

import aiohttp
from cachetools import TTLCache
from gidgethub import BadRequest, sansio

from bot.core.events import Payload
from bot.core.single_flight import SingleFlight
from bot.engine.writes import Writes
from bot.github.access import IDENTITY, NO_PERMISSIONS, READING, Access, InstalledRepository, WritePermissions
from bot.github.auth import (
    AppCredentials,
    AppKey,
    InstallationCredentials,
    InstallationTokens,
    SharedReading,
    Token,
    TokenKey,
)
from bot.github.client import TIMEOUT, GitHub, Wire, expanded
from bot.github.errors import (
    AccessPaused,
    NoSuchApp,
    NotInstalled,
    NotSelected,
    is_forbidden,
    is_not_found,
    is_suspended,
    is_unprocessable,
    message_of,
)
from bot.github.limits.governor import Governor, SharedBudget, Timing
from bot.github.limits.ledger import Allowance
from bot.github.transport.breaker import Breakers
from bot.github.transport.clock import GitHubClock
from bot.github.transport.observer import RequestObserver, Unobserved
from bot.github.transport.seen import SeenAddresses

MAX_REPOSITORIES = 100_000
"""The most repositories whose installation and ID are cached."""
INSTALLATION_LASTS = 10 * 60  # seconds; after a reinstallation the ID of the installation is another
LISTING_LASTS = 25 * 60  # seconds; the checks of the server repeat it every ten minutes
ID_LASTS = 60 * 60  # seconds; a name gets another ID only after its repository was renamed or deleted

SUSPENDED_NOW = "suspended on GitHub, so their jobs wait: {installations}; see `nightjar doctor`"
NOT_INSTALLED = "installation {installation}: the App was uninstalled there"
DENIED = "installation {installation}: GitHub denies access: {reason}"
NOT_ON = "{repository}: the App is not installed on it, or it does not exist; install it from its GitHub page"
NO_SUCH_APP = (
    "there is no App with the ID {app} on this GitHub: set GITHUB_APP_ID to the ID on the App's page, and "
    "GITHUB_API_URL to the GitHub where it is registered"
)
NOT_AMONG = (
    "installation {installation}: the App is not installed on the repository; add it on the installation's page on "
    "GitHub"
)


@dataclass(frozen=True, slots=True)
class AppIdentity:
    """The App's identity on GitHub. The bot recognizes its own comments and reactions by `user_id`, never by name."""

    app_id: int
    slug: str
    login: str
    user_id: int


class GitHubApp:
    """Makes all clients of one process; they share the session, the governor, the tokens and the cache.

    Raises `ValueError`, naming GITHUB_PRIVATE_KEY, for a malformed key. `allowance` is for a GitHub whose limits differ
    from github.com's. `budget` is shared with other processes that write for the same installations.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        app_id: int | str,
        private_key: str,
        api_url: str = sansio.DOMAIN,
        observer: RequestObserver | None = None,
        timeout: aiohttp.ClientTimeout = TIMEOUT,
        timing: Timing | None = None,
        allowance: Allowance | None = None,
        budget: SharedBudget | None = None,
    ) -> None:
        timing = timing or Timing()
        self._wire = Wire(
            session=session,
            api_url=api_url.rstrip("/"),
            governor=Governor(timing, allowance, budget),
            observer=observer or Unobserved(),
            timing=timing,
            clock=GitHubClock(timing.wall),
            breakers=Breakers(timing.clock),
            seen=SeenAddresses(timing.clock),
            timeout=timeout,
        )
        self.app_id = str(app_id)
        self._credentials = AppCredentials(AppKey(str(app_id), private_key, self._wire.clock))
        self._tokens = InstallationTokens(self._mint, timing)
        self._installations: TTLCache[str, int] = TTLCache(MAX_REPOSITORIES, INSTALLATION_LASTS, timer=timing.clock)
        self._lookups: SingleFlight[tuple[str, int], int] = SingleFlight()
        self._ids: TTLCache[str, int] = TTLCache(MAX_REPOSITORIES, ID_LASTS, timer=timing.clock)
        self._id_lookups: SingleFlight[tuple[str, int], int] = SingleFlight()
        self._listed_places: TTLCache[str, InstalledRepository] = TTLCache(
            MAX_REPOSITORIES, LISTING_LASTS, timer=timing.clock
        )
        self._listed_names: TTLCache[int, str] = TTLCache(MAX_REPOSITORIES, LISTING_LASTS, timer=timing.clock)
        self._confirmed: TTLCache[int, bool] = TTLCache(MAX_REPOSITORIES, INSTALLATION_LASTS, timer=timing.clock)
        # This count is part of the key of a look-up: a look-up that began before a change may return the old state, so
        # callers after the change must not share it.
        self._forgets = 0
        self._identity: AppIdentity | None = None
        self._identifying: SingleFlight[None, AppIdentity] = SingleFlight()

    def __repr__(self) -> str:
        return f"GitHubApp(app_id={self.app_id}, api_url={self._wire.api_url!r})"

    @property
    def clock(self) -> GitHubClock:
        """GitHub's clock, as learnt from its answers."""
        return self._wire.clock

    @property
    def refused(self) -> str | None:
        """Why GitHub refuses the App at the moment; None while it accepts the App."""
        return next(iter(self._wire.refusals.values()), None)

    @property
    def suspended(self) -> str | None:
        """A text that names the suspended installations, as far as this process knows; None if there are none."""
        numbers = ", ".join(map(str, sorted(self._tokens.suspended)))
        return SUSPENDED_NOW.format(installations=numbers) if numbers else None

    def note_suspension(self, installation: int, *, suspended: bool) -> None:
        """Store whether GitHub says that an installation is suspended."""
        (self._tokens.suspended.add if suspended else self._tokens.suspended.discard)(installation)

    def as_app(self) -> GitHub:
        """Return a client for the App itself; GitHub accepts its JWT only below `/app` and for installations."""
        return GitHub(self._wire, self._credentials, writing=self._credentials)

    def client(
        self,
        place: InstalledRepository,
        permissions: WritePermissions = NO_PERMISSIONS,
        *,
        writes: Writes | None = None,
    ) -> GitHub:
        """Return a client for one repository. A client is cheap: make one wherever you need it.

        It reads with a token that can only read, and writes with one that has `permissions`; without them it refuses to
        write. Below the address of a repository that was listed, it reads with the token that all clients of the
        installation share; everything else it reads with a token for this repository alone. `writes` remembers, over
        all tries of a job, the writes that must not be sent twice. Its methods raise `NotInstalled` after the App was
        uninstalled, and `AccessPaused` while the installation is suspended.
        """
        writing = self._credentials_for(place, Access.writing(permissions)) if permissions else None
        reading = self._credentials_for(place, READING)
        return GitHub(self._wire, reading, writing=writing, writes=writes, shared=self._shared_reading(place))

    async def reader(self, repository: str) -> GitHub:
        """Return a client that reads `owner/name`. Raises the errors of `place_of`."""
        return self.client(await self.place_of(repository))

    async def place_of(self, repository: str) -> InstalledRepository:
        """Return the installation and ID of `owner/name`; raise `NotInstalled` if the App is not installed on it."""
        name = repository.lower()
        listed_place = self._listed_places.get(name)
        if listed_place is not None:
            return listed_place
        installation = await self.installation_for(repository)
        repository_id = self._ids.get(name)
        if repository_id is None:
            repository_id = await self._id_lookups.do(
                (name, self._forgets), lambda: self._look_up_id(installation, repository)
            )
        return InstalledRepository(installation, repository_id)

    async def installation_for(self, repository: str) -> int:
        """Return the installation ID of `owner/name`, cached for ten minutes; raise `NotInstalled` if it has none."""
        name = repository.lower()
        listed_place = self._listed_places.get(name)
        if listed_place is not None:
            return listed_place.installation
        cached_id = self._installations.get(name)
        if cached_id is not None:
            return cached_id
        return await self._lookups.do((name, self._forgets), lambda: self._look_up(repository))

    def forget(self, installation: int) -> None:
        """Drop the cached data of an installation: its repositories, permissions or state have changed."""
        self._forgets += 1
        self._tokens.forget(installation)
        for name in [name for name, number in self._installations.items() if number == installation]:
            del self._installations[name]
            self._ids.pop(name, None)
        places = [(name, place) for name, place in self._listed_places.items() if place.installation == installation]
        for name, place in places:
            del self._listed_places[name]
            self._listed_names.pop(place.repository, None)
            self._confirmed.pop(place.repository, None)

    def changes(self, installation: int) -> int:
        """Return how often the data of an installation was dropped; read it before a request whose answer to note."""
        return self._tokens.changes(installation)

    def note_listed(self, name: str, place: InstalledRepository, full_name: str, changes: int) -> None:
        """Store that GitHub lists a repository of app.yaml in an installation, unless that has changed since.

        `name` is the one in app.yaml, `full_name` the one on GitHub.
        """
        if changes == self.changes(place.installation):
            self._listed_places[name.lower()] = self._listed_places[full_name.lower()] = place
            self._listed_names[place.repository] = full_name

    def note_shown(self, repository: int) -> None:
        """Store that GitHub has just shown a repository to its installation: a 404 below it is about what was read."""
        self._confirmed[repository] = True

    async def identity(self, place: InstalledRepository) -> AppIdentity:
        """Return the App's identity; ask GitHub once, through any installation."""
        if self._identity is None:
            if place.paused is not None:
                raise place.paused
            self._identity = await self._identifying.do(None, lambda: self._identify(place.installation))
        return self._identity

    def metadata_client(self, installation: int) -> GitHub:
        """Return a client that can only look up metadata in an installation, such as its repositories."""
        return GitHub(self._wire, InstallationCredentials(self._tokens, TokenKey(installation, None, IDENTITY)))

    def _credentials_for(self, place: InstalledRepository, access: Access) -> InstallationCredentials:
        return InstallationCredentials(
            self._tokens, TokenKey(place.installation, place.repository, access), place.paused
        )

    def _shared_reading(self, place: InstalledRepository) -> SharedReading | None:
        """Return what reads a repository with the token of its whole installation; None unless GitHub lists it there.

        The name is the one that GitHub gives for the ID: the one in a payload may be outdated.
        """
        full_name = self._listed_names.get(place.repository)
        listed_place = self._listed_places.get(full_name.lower()) if full_name is not None else None
        if full_name is None or listed_place != place:
            return None
        credentials = InstallationCredentials(self._tokens, TokenKey(place.installation, None, READING))
        return SharedReading(credentials, _address_of(self._wire.api_url, full_name), place.repository, self._confirmed)

    async def _mint(self, key: TokenKey) -> Token:
        """Make a token for one repository, or for reading all of the installation if the key names none."""
        repositories = {} if key.repository is None else {"repository_ids": [key.repository]}
        return _token(await self._request_token(key, repositories), self.clock)

    async def _request_token(self, key: TokenKey, repositories: Mapping[str, Any]) -> Payload:
        """Request a token with those of the permissions that the installation has granted.

        `repositories` is the member of the request that names the repositories, empty for all.

        https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app
        """
        installation, access = key.installation, key.access
        try:
            return await self._post_token(installation, repositories, access)
        except BadRequest as error:
            if not is_unprocessable(error):
                raise
        # One of the permissions is not granted, or the installation does not include the repository.
        available = access.within(await self._read_granted(installation))
        if available == access:
            raise NotSelected(NOT_AMONG.format(installation=installation), key.repository)
        return await self._post_token(installation, repositories, available)

    async def _post_token(self, installation: int, repositories: Mapping[str, Any], access: Access) -> Payload:
        url, url_vars = "/app/installations/{installation_id}/access_tokens", {"installation_id": str(installation)}
        data = {**repositories, "permissions": dict(access.levels)}
        try:
            token = Payload(await self.as_app().post_repeatable(url, url_vars, data=data), "access_tokens")
        except BadRequest as error:
            raise await self._explain_refusal(installation, error) from None
        self.note_suspension(installation, suspended=False)
        return token

    async def _read_granted(self, installation: int) -> Mapping[str, str]:
        url = "/app/installations/{installation_id}"
        try:
            description = Payload(
                await self.as_app().getitem(url, {"installation_id": str(installation)}), "installation"
            )
        except BadRequest as error:
            raise await self._explain_refusal(installation, error) from None
        permissions = description.at("permissions")
        return {name: permissions.string(name) for name in permissions.raw}

    async def _explain_refusal(self, installation: int, error: BadRequest) -> Exception:
        """Return the error that says why GitHub refused a request about an installation; note if it is suspended.

        That is `AccessPaused` for a suspended installation and `NotInstalled` for one that is gone or refuses the App;
        a caller must not mistake its 404 for one about the object that it wanted to read. Any other refusal is returned
        as it is. Raises `NoSuchApp` if GitHub knows no such App.
        """
        if is_suspended(error):
            self.note_suspension(installation, suspended=True)
            return AccessPaused.suspended(installation)
        # An App that does not exist gets a 404 as well: `read_app` then raises `NoSuchApp`.
        if is_not_found(error):
            await self.read_app()
            return NotInstalled(NOT_INSTALLED.format(installation=installation))
        if is_forbidden(error):
            return NotInstalled(DENIED.format(installation=installation, reason=message_of(error)))
        return error

    async def _look_up(self, repository: str) -> int:
        owner, _, name = repository.partition("/")
        forgets = self._forgets
        try:
            answer = await self.as_app().getitem("/repos/{owner}/{repo}/installation", {"owner": owner, "repo": name})
        except BadRequest as error:
            if not is_not_found(error):
                raise
            await self.read_app()
            raise NotInstalled(NOT_ON.format(repository=repository)) from None
        number = Payload(answer, "installation").integer("id")
        if forgets == self._forgets:  # otherwise GitHub may have answered before the change
            self._installations[repository.lower()] = number
        return number

    async def _look_up_id(self, installation: int, repository: str) -> int:
        """Find a repository's ID: GitHub returns it with a token for the name. Store the token for later calls."""
        repositories = {"repositories": [repository.partition("/")[2]]}
        changes, forgets = self._tokens.changes(installation), self._forgets
        try:
            token = await self._request_token(TokenKey(installation, None, READING), repositories)
        except NotInstalled:
            # The repository was renamed: GitHub redirects requests, but makes no token for the old name.
            repository_id = await self._id_of(installation, repository)
        else:
            listed = next(token.items("repositories"), None)
            repository_id = await self._id_of(installation, repository) if listed is None else listed.integer("id")
            self._tokens.store(TokenKey(installation, repository_id, READING), _token(token, self.clock), changes)
        if forgets == self._forgets:
            self._ids[repository.lower()] = repository_id
        return repository_id

    async def _id_of(self, installation: int, repository: str) -> int:
        answer = await self.metadata_client(installation).getitem("/repos/{+repo}", {"repo": repository})
        return Payload(answer, "repository").integer("id")

    async def read_app(self) -> Payload:
        """Return GitHub's description of the App; raise `NoSuchApp` if none has our ID, `AppRefused` for a wrong key.

        GitHub answers every request of an App that does not exist with 404, as it does for a missing object.
        https://docs.github.com/en/rest/apps/apps#get-the-authenticated-app
        """
        try:
            return Payload(await self.as_app().getitem("/app"), "app")
        except BadRequest as error:
            if not is_not_found(error):
                raise
            refusal = self._wire.refusals[AppCredentials] = NO_SUCH_APP.format(app=self.app_id)
            raise NoSuchApp(refusal) from None

    async def _identify(self, installation: int) -> AppIdentity:
        app = await self.read_app()
        login = f"{app.string('slug')}[bot]"
        # GitHub answers 401 to a JWT on /users, so ask with the token of any installation.
        user = Payload(
            await self.metadata_client(installation).getitem("/users/{username}", {"username": login}), "user"
        )
        return AppIdentity(app.integer("id"), app.string("slug"), login, user.integer("id"))


@lru_cache(maxsize=4096)
def _address_of(api_url: str, full_name: str) -> str:
    """Return the address of a repository's REST API. Remembered, because each client of the repository has it."""
    return api_url.removesuffix("/") + expanded("/repos/{+repo}", {"repo": full_name})


def _token(answer: Payload, clock: GitHubClock) -> Token:
    expires_at = datetime.fromisoformat(answer.string("expires_at")).timestamp()
    # `expires_at` is by GitHub's clock, so subtract GitHub's time, not ours.
    return Token(answer.string("token"), expires_at - clock.now())
