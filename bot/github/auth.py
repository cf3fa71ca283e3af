"""Authenticate to GitHub: the App with a JWT, an installation with a token. No text shows a secret."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable, MutableMapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Protocol
from urllib.parse import unquote, urlsplit

import jwt
from cachetools import TLRUCache

from bot.config.private_key import pem_of, rsa_key
from bot.core.single_flight import SingleFlight
from bot.github.access import Access
from bot.github.errors import AccessPaused
from bot.github.limits.governor import Timing
from bot.github.transport.clock import GitHubClock

JWT_BACKDATED = 60  # seconds, to allow for clock drift
JWT_LIFETIME = 9 * 60  # seconds from now; GitHub allows 10 minutes
REFRESH_EARLY = 5 * 60  # seconds before a token ends
NEW_TOKEN = 60  # seconds for which we assume that a token has the current permissions
MAX_TOKENS = 10_000
CORRECTED = 5.0  # seconds; a new JWT whose times differ by less would be refused again
APP = "app"
"""The name of the App itself, used where an installation has its number."""

BAD_KEY = (
    "GITHUB_PRIVATE_KEY is not an RSA private key in PEM form: it must hold the whole .pem file that GitHub gave, "
    "from -----BEGIN to END-----, without a passphrase"
)

APP_REFUSED = (
    "GitHub refuses the App's JWT: {reason}. GITHUB_APP_ID and GITHUB_PRIVATE_KEY must belong to the same App, and the "
    "key must not have been deleted on GitHub; `nightjar doctor` checks them"
)
TOKEN_REFUSED = "GitHub refuses our access token: {reason}. The bot tries again until GitHub accepts it"  # noqa: S105


class Credentials(Protocol):
    """Authorizes the requests of a client."""

    @property
    def name(self) -> str:
        """The name under which limits and cached answers are stored."""
        ...

    def paused(self) -> AccessPaused | None:
        """Record that GitHub called the installation suspended; return the error to raise, None for no installation."""
        ...

    async def authorization(self) -> str:
        """Return the value of the `Authorization` header."""
        ...

    def rejected(self, authorization: str, status: int) -> bool:
        """Record that GitHub answered 401 or 403; return whether to try again with new credentials."""
        ...

    @property
    def refusal(self) -> str:
        """The text for people when GitHub refuses these credentials; `{reason}` is for GitHub's words."""
        ...


class AppKey:
    """The App's private key, which signs JWTs and never appears in any text.

    Raises `ValueError` for anything but an RSA key; the text names GITHUB_PRIVATE_KEY and shows no part of the key.
    """

    def __init__(self, app_id: str, private_key: str, clock: GitHubClock) -> None:
        self._app_id = app_id
        self._clock = clock
        key = rsa_key(pem_of(private_key))
        if key is None:
            raise ValueError(BAD_KEY)
        self._key = key

    def jwt(self) -> str:
        """Return a signed JWT with times by GitHub's clock.

        https://docs.github.com/en/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-json-web-token-jwt-for-a-github-app
        """
        issued_at = int(self._clock.now())
        claims = {"iat": issued_at - JWT_BACKDATED, "exp": issued_at + JWT_LIFETIME, "iss": self._app_id}
        # GitHub accepts no other algorithm.
        return jwt.encode(claims, self._key, algorithm="RS256")

    def outdated(self, encoded: str) -> bool:
        """Return whether the JWT's times are wrong according to GitHub's clock as we know it now."""
        # Skip the check of the signature: we signed the JWT ourselves, and read only its times.
        claims = jwt.decode(encoded, options={"verify_signature": False})
        return abs(int(claims["iat"]) + JWT_BACKDATED - self._clock.now()) > CORRECTED


@dataclass(frozen=True, slots=True)
class Token:
    """An installation token, valid for `lifetime` seconds from its arrival."""

    value: str = field(repr=False)
    lifetime: float

    @property
    def usable_seconds(self) -> float:
        """Seconds after which to request a new token."""
        # Use half of a short lifetime: of ten minutes or less, REFRESH_EARLY would leave little or nothing.
        return max(self.lifetime - REFRESH_EARLY, self.lifetime / 2)


@dataclass(frozen=True, slots=True)
class TokenKey:
    """The purpose of a token. `repository` is None for all repositories of the installation, only ever to read."""

    installation: int
    repository: int | None
    access: Access


@dataclass(frozen=True, slots=True)
class _CachedToken:
    token: Token
    made_at: float


class InstallationTokens:
    """Cache tokens by purpose until shortly before they expire; concurrent callers share one request for a token."""

    def __init__(self, mint: Callable[[TokenKey], Awaitable[Token]], timing: Timing) -> None:
        self._mint = mint
        self._clock = timing.clock
        self._tokens: TLRUCache[TokenKey, _CachedToken] = TLRUCache(
            MAX_TOKENS, ttu=lambda _, cached, moment: moment + cached.token.usable_seconds, timer=timing.clock
        )
        # The count of changes is part of the key: a caller after a change must not get a token from before it.
        self._flights: SingleFlight[tuple[TokenKey, int], Token] = SingleFlight()
        self._changes: Counter[int] = Counter()
        self.suspended: set[int] = set()
        """The installations that are suspended, as far as this process knows."""

    async def get(self, key: TokenKey) -> Token:
        """Return a token that has time left."""
        cached = self._tokens.get(key)
        if cached:
            return cached.token
        changes = self.changes(key.installation)
        return await self._flights.do((key, changes), lambda: self._fresh(key, changes))

    async def _fresh(self, key: TokenKey, changes: int) -> Token:
        token = await self._mint(key)
        self.store(key, token, changes)
        return token

    def changes(self, installation: int) -> int:
        """Return how often an installation's tokens were forgotten; read it before you request a token to `store`."""
        return self._changes[installation]

    def store(self, key: TokenKey, token: Token, changes: int) -> None:
        """Store a token, unless the installation's permissions have changed since it was requested."""
        if changes == self.changes(key.installation):
            self._tokens[key] = _CachedToken(token, self._clock())

    def drop(self, key: TokenKey, value: str) -> None:
        """Forget a token that GitHub no longer accepts, unless a newer one has already replaced it."""
        cached = self._tokens.get(key)
        if cached is not None and cached.token.value == value:
            del self._tokens[key]

    def outgrown(self, key: TokenKey, value: str) -> bool:
        """Forget a token if it may lack permissions granted later; return whether to try again with a new one.

        GitHub fixes a token's permissions when it makes the token. A new token has all current permissions: replacing
        it would not help, and would cost a token for every refused request.
        """
        cached = self._tokens.get(key)
        # Another request has replaced or removed it already.
        if cached is None or cached.token.value != value:
            return True
        if self._clock() - cached.made_at < NEW_TOKEN:
            return False
        del self._tokens[key]
        return True

    def forget(self, installation: int) -> None:
        """Forget all tokens of an installation, requested ones too: its permissions or repositories have changed."""
        self._changes[installation] += 1
        self.suspended.discard(installation)
        for key in [key for key in self._tokens if key.installation == installation]:
            del self._tokens[key]


class AppCredentials:
    """Credentials of the App itself: a JWT."""

    name = APP

    def __init__(self, key: AppKey) -> None:
        self._key = key

    async def authorization(self) -> str:
        """Return a header with a new JWT: signing takes about a millisecond, and few requests need one."""
        # GitHub accepts a JWT only as `Bearer`, and installation tokens in both forms:
        # https://docs.github.com/en/rest/authentication/authenticating-to-the-rest-api
        return f"Bearer {self._key.jwt()}"

    refusal = APP_REFUSED

    def rejected(self, authorization: str, status: int) -> bool:
        """Return whether a JWT with corrected times may work; if our clock was right, the ID or the key is wrong."""
        return status == HTTPStatus.UNAUTHORIZED and self._key.outdated(authorization.removeprefix("Bearer "))

    def paused(self) -> None:
        """Return None: the App itself has no installation. Requests for a token know the suspended installation."""


class InstallationCredentials:
    """Credentials of one installation: a token for one purpose."""

    refusal = TOKEN_REFUSED

    def __init__(self, tokens: InstallationTokens, key: TokenKey, paused: AccessPaused | None = None) -> None:
        """Use the tokens of a key; with `paused`, every request raises this error instead of being sent."""
        self.name = str(key.installation)
        self._tokens = tokens
        self._key = key
        self._paused = paused

    async def authorization(self) -> str:
        """Return a header with a token that has time left."""
        if self._paused is not None:
            raise self._paused
        return f"token {(await self._tokens.get(self._key)).value}"

    def rejected(self, authorization: str, status: int) -> bool:
        """Forget the token if a new one may work: always after a 401; after a 403 unless the token is new."""
        value = authorization.removeprefix("token ")
        if status == HTTPStatus.FORBIDDEN:
            return self._tokens.outgrown(self._key, value)
        self._tokens.drop(self._key, value)
        return True

    def paused(self) -> AccessPaused:
        """Record that the installation is suspended, and return the error to raise."""
        self._tokens.suspended.add(self._key.installation)
        return AccessPaused.suspended(self._key.installation)


@dataclass(frozen=True, slots=True)
class SharedReading:
    """Credentials that read every repository of an installation, for a client that may use them for one of them.

    They save a token for each repository. A client uses them only for addresses below `url`, which names the one
    repository, so nothing that it reads comes from another: docs/decisions/one-read-token.md
    """

    credentials: InstallationCredentials
    url: str
    repository: int
    confirmed: MutableMapping[int, bool]
    """The IDs of repositories that GitHub has lately shown to such a token."""

    def covers(self, url: str) -> bool:
        """Return whether an address is about the repository."""
        root, path = urlsplit(self.url).path.lower(), unquote(urlsplit(url).path).lower()
        # A segment of dots, even an encoded one, may lead to another repository.
        return (path == root or path.startswith(f"{root}/")) and not {".", ".."} & set(path.split("/"))
