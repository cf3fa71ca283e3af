"""The App: it signs in, makes installation tokens and knows its own name."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime

import aiohttp
from cachetools import TTLCache
from gidgethub import BadRequest, sansio

from bot.github.auth import (
    AppCredentials,
    AppKey,
    InstallationCredentials,
    InstallationTokens,
    SingleFlight,
    Token,
)
from bot.github.client import TIMEOUT, GitHub, Observer, Unobserved, Wire
from bot.github.clock import GitHubClock
from bot.github.errors import AppRefused, NotInstalled, is_forbidden, is_not_found
from bot.github.governor import Governor, SharedBudget, Timing
from bot.github.limits import Allowance
from bot.payload import Payload
from bot.writes import Writes

MAX_REPOSITORIES = 10_000
INSTALLATION_KEPT = 10 * 60  # seconds; an App that is taken away and installed again has a new number

GONE = "installation {installation}: the App is no longer installed there, or is suspended"
NOT_ON = "{repository}: the App is not installed on it, or it does not exist; install it from its GitHub page"
NO_SUCH_APP = (
    "there is no App with the ID {app} on this GitHub: set GITHUB_APP_ID to the ID on the App's page, and "
    "GITHUB_API_URL to the GitHub where it is registered"
)
NOWHERE = "the App is not installed anywhere yet; install it from its GitHub page"


@dataclass(frozen=True, slots=True)
class AppIdentity:
    """Who the App is on GitHub. Its own comments and reactions are known by `user_id`, never by name."""

    app_id: int
    slug: str
    login: str
    user_id: int


class GitHubApp:
    """The way to every client of one process: they share the session, the governor, the tokens and the cache.

    Raises `ValueError`, naming GITHUB_PRIVATE_KEY, for a malformed key. `dry_run` makes every client refuse to write;
    `allowance` is for where github.com's limits are not the ones that bind; `budget` is what this process shares with
    others that write for the same installations.
    """

    def __init__(
        self,
        session: aiohttp.ClientSession,
        *,
        app_id: int | str,
        private_key: str,
        api_url: str = sansio.DOMAIN,
        dry_run: bool = False,
        observer: Observer | None = None,
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
            timeout=timeout,
        )
        self.app_id = str(app_id)
        self.dry_run = dry_run
        self._credentials = AppCredentials(AppKey(str(app_id), private_key, self._wire.clock))
        self._tokens = InstallationTokens(self._mint, timing)
        self._installations: TTLCache[str, int] = TTLCache(MAX_REPOSITORIES, INSTALLATION_KEPT, timer=timing.clock)
        self._lookups: SingleFlight[str, int] = SingleFlight()
        self._identity: AppIdentity | None = None
        self._identifying: SingleFlight[None, AppIdentity] = SingleFlight()

    def __repr__(self) -> str:
        return f"GitHubApp(app_id={self.app_id}, api_url={self._wire.api_url!r})"

    @property
    def clock(self) -> GitHubClock:
        """Return what is known of GitHub's time."""
        return self._wire.clock

    @property
    def refused(self) -> str | None:
        """Return why GitHub does not accept the App at this moment, None while it does."""
        return next(iter(self._wire.refusals.values()), None)

    def as_app(self, *, dry_run: bool = False) -> GitHub:
        """Return a client for the App itself; GitHub takes its JWT under `/app` and for installations only."""
        return GitHub(self._wire, self._credentials, dry_run=dry_run or self.dry_run)

    def installation(self, installation_id: int, *, dry_run: bool = False, writes: Writes | None = None) -> GitHub:
        """Return a client for one installation. It is light: make one wherever it is needed.

        `writes` remembers, over all tries of a job, what may not be sent twice. Its methods raise `NotInstalled` once
        the App was taken away or suspended.
        """
        credentials = InstallationCredentials(self._tokens, installation_id)
        return GitHub(self._wire, credentials, dry_run=dry_run or self.dry_run, writes=writes)

    async def installation_for(self, repository: str) -> int:
        """Return the number of the installation on `owner/name`, kept ten minutes; raise `NotInstalled` without one."""
        name = repository.lower()
        kept = self._installations.get(name)
        return kept if kept is not None else await self._lookups.do(name, lambda: self._look_up(repository))

    async def identity(self) -> AppIdentity:
        """Return who the App is, asked once; raise `NotInstalled` as long as it is installed nowhere."""
        if self._identity is None:
            self._identity = await self._identifying.do(None, self._identify)
        return self._identity

    async def _mint(self, installation_id: int) -> Token:
        # https://docs.github.com/en/rest/apps/apps#create-an-installation-access-token-for-an-app
        url = "/app/installations/{installation_id}/access_tokens"
        try:
            made = await self.as_app().post_repeatable(url, {"installation_id": str(installation_id)}, data={})
        except BadRequest as error:
            if not (is_not_found(error) or is_forbidden(error)):
                raise
            if is_not_found(error):
                await self._check_app_exists()
            # A 404 here must not be taken for the absence of what the caller wanted to read.
            raise NotInstalled(GONE.format(installation=installation_id)) from None
        answer = Payload(made, "access_tokens")
        ends = datetime.fromisoformat(answer.string("expires_at")).timestamp()
        return Token(answer.string("token"), ends - self._wire.clock.now())

    async def _look_up(self, repository: str) -> int:
        owner, _, name = repository.partition("/")
        try:
            found = await self.as_app().getitem("/repos/{owner}/{repo}/installation", {"owner": owner, "repo": name})
        except BadRequest as error:
            if not is_not_found(error):
                raise
            await self._check_app_exists()
            raise NotInstalled(NOT_ON.format(repository=repository)) from None
        number = Payload(found, "installation").integer("id")
        self._installations[repository.lower()] = number
        return number

    async def _check_app_exists(self) -> None:
        """Raise `AppRefused` if no App has our ID: GitHub answers 404 to everything then, as for what is not there."""
        try:
            await self.as_app().getitem("/app")
        except BadRequest as error:
            if not is_not_found(error):
                raise
            told = self._wire.refusals[AppCredentials] = NO_SUCH_APP.format(app=self.app_id)
            raise AppRefused(told) from None

    async def _identify(self) -> AppIdentity:
        app = Payload(await self.as_app().getitem("/app"), "app")
        login = f"{app.string('slug')}[bot]"
        # GitHub answers 401 to a JWT on /users, so an installation has to ask; any will do.
        reader = self.installation(await self._any_installation())
        user = Payload(await reader.getitem("/users/{username}", {"username": login}), "user")
        return AppIdentity(app.integer("id"), app.string("slug"), login, user.integer("id"))

    async def _any_installation(self) -> int:
        async with aclosing(self.as_app().getiter("/app/installations")) as installations:
            async for installation in installations:
                if installation.get("suspended_at") is None:
                    return Payload(installation, "installation").integer("id")
        raise NotInstalled(NOWHERE)
