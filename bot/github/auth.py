"""Who we are to GitHub: the App by a JWT, an installation by a token of an hour. Secrets stay inside."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import jwt
from cachetools import TLRUCache

from bot.github.clock import GitHubClock
from bot.github.governor import Timing
from bot.keys import pem_of, rsa_key

JWT_BACKDATED = 60  # seconds, for clocks that differ
JWT_LIFETIME = 9 * 60  # seconds from now; GitHub allows 10 minutes
REFRESH_EARLY = 5 * 60  # seconds before a token ends
MAX_TOKENS = 10_000
CORRECTED = 5.0  # seconds; a JWT that differs by less from what we would sign now would be refused again
APP = "app"
"""The name of the App itself where others go by the number of their installation."""

BAD_KEY = (
    "GITHUB_PRIVATE_KEY is not an RSA private key in PEM form: it must hold the whole .pem file that GitHub gave, "
    "from -----BEGIN to END-----, without a passphrase"
)

APP_REFUSED = (
    "GitHub refuses the App's JWT: {reason}. GITHUB_APP_ID and GITHUB_PRIVATE_KEY must belong to the same App, and the "
    "key must not have been deleted on GitHub; `nightjar doctor` checks them"
)
TOKEN_REFUSED = "GitHub refuses our access token: {reason}. The bot tries again until GitHub accepts it"  # noqa: S105

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class Credentials(Protocol):
    """What a client shows to GitHub."""

    @property
    def name(self) -> str:
        """Name whose limits and cached answers these are."""
        ...

    async def authorization(self) -> str:
        """Return the value of the `Authorization` header."""
        ...

    def rejected(self, authorization: str) -> bool:
        """Take in that GitHub answered 401; say whether another try may fare better."""
        ...

    @property
    def refusal(self) -> str:
        """Say in words that GitHub does not accept these credentials; `{reason}` is for GitHub's words."""
        ...


class AppKey:
    """The App's private key: it signs JWTs and shows itself to nobody.

    Raises `ValueError` for what is no RSA key; the text names GITHUB_PRIVATE_KEY and holds nothing of it.
    """

    def __init__(self, app_id: str, private_key: str, clock: GitHubClock) -> None:
        self._app_id = app_id
        self._clock = clock
        key = rsa_key(pem_of(private_key))
        if key is None:
            raise ValueError(BAD_KEY)
        self._key = key

    def jwt(self) -> str:
        """Return a signed JWT, whose times are GitHub's.

        https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app
        """
        now = int(self._clock.now())
        claims = {"iat": now - JWT_BACKDATED, "exp": now + JWT_LIFETIME, "iss": self._app_id}
        return jwt.encode(claims, self._key, algorithm="RS256")

    def outdated(self, encoded: str) -> bool:
        """Say whether we know more about GitHub's time than when we signed this JWT."""
        claims = jwt.decode(encoded, options={"verify_signature": False})
        return abs(int(claims["iat"]) + JWT_BACKDATED - self._clock.now()) > CORRECTED


@dataclass(frozen=True, slots=True)
class Token:
    """An installation token, good for `lifetime` seconds from when it came."""

    value: str = field(repr=False)
    lifetime: float

    @property
    def usable(self) -> float:
        """The seconds to use it before a fresh one is asked for."""
        return max(self.lifetime - REFRESH_EARLY, self.lifetime / 2)


class SingleFlight(Generic[K, V]):
    """Let those who ask for the same thing at the same time share one answer, or one error."""

    def __init__(self) -> None:
        self._flights: dict[K, asyncio.Task[V]] = {}

    async def do(self, key: K, make: Callable[[], Awaitable[V]]) -> V:
        """Return what `make` gives; whoever comes meanwhile waits for the same. One who gives up stops nobody else."""
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.ensure_future(_awaited(make))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._land(key, done))
        return await asyncio.shield(flight)

    def _land(self, key: K, flight: asyncio.Task[V]) -> None:
        del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # read, so that asyncio does not complain where everybody has given up


async def _awaited(make: Callable[[], Awaitable[V]]) -> V:
    return await make()


class InstallationTokens:
    """Tokens by installation, kept until shortly before they end and made once however many ask."""

    def __init__(self, mint: Callable[[int], Awaitable[Token]], timing: Timing) -> None:
        self._mint = mint
        self._tokens: TLRUCache[int, Token] = TLRUCache(
            MAX_TOKENS, ttu=lambda _, token, now: now + token.usable, timer=timing.clock
        )
        self._flights: SingleFlight[int, Token] = SingleFlight()

    async def get(self, installation: int) -> Token:
        """Return a token that has time left."""
        kept = self._tokens.get(installation)
        return kept or await self._flights.do(installation, lambda: self._fresh(installation))

    async def _fresh(self, installation: int) -> Token:
        token = await self._mint(installation)
        self._tokens[installation] = token
        return token

    def drop(self, installation: int, value: str) -> None:
        """Forget a token that GitHub no longer takes, unless a newer one has already replaced it."""
        kept = self._tokens.get(installation)
        if kept is not None and kept.value == value:
            del self._tokens[installation]


class AppCredentials:
    """The App itself, by JWT."""

    name = APP

    def __init__(self, key: AppKey) -> None:
        self._key = key

    async def authorization(self) -> str:
        """Return a header with a fresh JWT: signing takes about a millisecond, and few requests need one."""
        return f"Bearer {self._key.jwt()}"

    refusal = APP_REFUSED

    def rejected(self, authorization: str) -> bool:
        """Say whether a JWT with other times may be accepted; where our clock was right, ID or key are wrong."""
        return self._key.outdated(authorization.removeprefix("Bearer "))


class InstallationCredentials:
    """One installation, by its token."""

    refusal = TOKEN_REFUSED

    def __init__(self, tokens: InstallationTokens, installation: int) -> None:
        self.name = str(installation)
        self._tokens = tokens
        self._installation = installation

    async def authorization(self) -> str:
        """Return a header with a token that has time left."""
        return f"token {(await self._tokens.get(self._installation)).value}"

    def rejected(self, authorization: str) -> bool:
        """Forget the token; a fresh one may be taken."""
        self._tokens.drop(self._installation, authorization.removeprefix("token "))
        return True
