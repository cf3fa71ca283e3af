"""GitHub Apps, their installations and tokens.

https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cache, lru_cache

import jwt
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sandbox.clock import Clock
from sandbox.errors import ApiError
from sandbox.model.home import Home
from sandbox.users import User, node_id
from sandbox.world import World

TOKEN_LIFETIME = timedelta(hours=1)
JWT_LIFETIME = timedelta(minutes=10)
# GitHub forgives a clock that is a little ahead; its documentation asks clients to back-date `iat` by 60 s.
CLOCK_DRIFT = timedelta(seconds=5)
NOT_DECODED = "A JSON web token could not be decoded"
MOST_WRITES = 3
DEFAULT_PERMISSIONS = {
    "actions": "write",
    "checks": "write",
    "contents": "write",
    "issues": "write",
    "members": "read",
    "metadata": "read",
    "pull_requests": "write",
    "statuses": "write",
}
DEFAULT_EVENTS = (
    "check_run",
    "check_suite",
    "create",
    "delete",
    "issue_comment",
    "issues",
    "pull_request",
    "pull_request_review",
    "pull_request_review_comment",
    "push",
    "status",
    "workflow_job",
    "workflow_run",
)
# The permission that GitHub requires for an event, at least to read; events for every App require none.
# https://docs.github.com/webhooks/webhook-events-and-payloads
EVENT_PERMISSIONS = {
    "check_run": "checks",
    "check_suite": "checks",
    "create": "contents",
    "delete": "contents",
    "issue_comment": "issues",
    "issues": "issues",
    "merge_group": "merge_queues",
    "pull_request": "pull_requests",
    "pull_request_review": "pull_requests",
    "pull_request_review_comment": "pull_requests",
    "push": "contents",
    "repository": "metadata",
    "status": "statuses",
    "workflow_job": "actions",
    "workflow_run": "actions",
}


@dataclass(eq=False)
class App:
    """A registered App. `webhook_url` may be set later; without one nothing is delivered."""

    github: World
    id: int
    slug: str
    owner: User
    bot: User
    created_at: datetime
    private_key: str
    webhook_url: str | None = None
    webhook_secret: str | None = None
    permissions: dict[str, str] = field(default_factory=lambda: dict(DEFAULT_PERMISSIONS))
    events: tuple[str, ...] = DEFAULT_EVENTS
    hook_content_type: str = "json"
    hook_insecure_ssl: str = "0"
    client_id: str = field(default_factory=lambda: f"Iv23li{secrets.token_hex(7)}")
    client_secret: str = field(default_factory=lambda: secrets.token_hex(20), repr=False)
    callback_urls: tuple[str, ...] = ()
    """The addresses to which people may be sent back after they sign in."""
    person_tokens_expire: bool = True
    installations: dict[int, Installation] = field(default_factory=dict)

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("A", self.id)

    def hears(self, event: str) -> bool:
        """Say whether the App receives an event: it is subscribed and has the permission."""
        needed = EVENT_PERMISSIONS.get(event)
        return event in self.events and (needed is None or needed in self.permissions)

    def install(self, *repositories: Home) -> Installation:
        """Install the App on repositories of one owner, and return the installation of that owner."""
        installation = self.installation_of(repositories[0].owner)
        created = installation is None
        if installation is None:
            installation = Installation(self.github.new_id(), self, repositories[0].owner, self.github.clock.now())
            self.installations[installation.id] = installation
        added = [repository for repository in repositories if repository not in installation.repositories]
        installation.repositories.extend(added)
        self.github.events.installation(installation, "created" if created else "added", added)
        return installation

    def installation_of(self, owner: User) -> Installation | None:
        """Return the App's installation on an account, or None."""
        return next((i for i in self.installations.values() if i.account is owner), None)

    def covers(self, repository: Home) -> Installation | None:
        """Return the installation through which the App sees a repository, or None."""
        installation = self.selected(repository)
        return installation if installation and not installation.suspended_at else None

    def selected(self, repository: Home) -> Installation | None:
        """Return the installation that includes a repository, suspended or not; or None."""
        installation = self.installation_of(repository.owner)
        return installation if installation and repository in installation.repositories else None


@dataclass(eq=False)
class Installation:
    """An App on one account, with the repositories that were selected."""

    id: int
    app: App
    account: User
    created_at: datetime
    repositories: list[Home] = field(default_factory=list)
    suspended_at: datetime | None = None
    suspended_by: User | None = None
    accepted: dict[str, str] | None = None
    """The permissions that the account has accepted, None for those that the App has now."""

    @property
    def permissions(self) -> dict[str, str]:
        """Return the App's permissions here; an owner of the account has to accept permissions that are added later."""
        return self.app.permissions if self.accepted is None else self.accepted

    def suspend(self, actor: User | None = None) -> None:
        """Suspend the installation, as its account does, or as somebody else: its tokens stop working."""
        self.suspended_at, self.suspended_by = self.app.github.clock.now(), actor or self.account
        self.app.github.events.installation(self, "suspend", self.repositories)

    def unsuspend(self) -> None:
        """Let the App work again."""
        self.suspended_at = self.suspended_by = None
        self.app.github.events.installation(self, "unsuspend", self.repositories)

    def accept(self, permissions: Mapping[str, str]) -> None:
        """Give the App other permissions, and accept them here."""
        self.app.permissions, self.accepted = dict(permissions), None
        self.app.github.events.installation(self, "new_permissions_accepted", self.repositories)

    def remove(self, repository: Home) -> None:
        """Remove a repository from the installation."""
        self.repositories.remove(repository)
        self.app.github.events.installation(self, "removed", [repository])

    def delete(self) -> None:
        """Uninstall the App."""
        del self.app.installations[self.id]
        self.app.github.events.installation(self, "deleted", self.repositories)


@dataclass(eq=False)
class InstallationToken:
    """An installation token: `ghs_…`, valid for an hour, perhaps narrowed."""

    value: str
    installation: Installation
    expires_at: datetime
    permissions: Mapping[str, str]
    chosen: list[Home] | None = None
    """The repositories to which the request narrowed it; None for all of the installation."""
    narrowed_by: frozenset[str] | None = None
    """The keys of the request that narrow it (`repositories`, `repository_ids`, `permissions`); None: not requested."""

    @property
    def repositories(self) -> list[Home]:
        """Return what it covers now: the choice of the installation's repositories may change after it was made."""
        installed = self.installation.repositories
        return (
            list(installed)
            if self.chosen is None
            else [repository for repository in self.chosen if repository in installed]
        )

    @property
    def too_broad(self) -> str | None:
        """Say in what way it gives more than a careful App requests; None if it does not, or no App requested it."""
        if self.narrowed_by is None:
            return None
        if "permissions" not in self.narrowed_by:
            return "it has every permission of the App"
        written = sorted(name for name, level in self.permissions.items() if level == "write")
        if written and not self.narrowed_by & {"repositories", "repository_ids"}:
            return f"it may write {written} in every repository of the installation"
        return f"it may write {written} at once" if len(written) > MOST_WRITES else None

    def may(self, permission: str, level: str) -> bool:
        """Return whether the token has a permission; `write` includes `read`."""
        granted = self.permissions.get(permission)
        return granted == "write" or (granted == "read" and level == "read")


class Tokens:
    """Issues installation tokens and checks both them and the Apps' JSON Web Tokens.

    `issued` are all tokens ever made, `shown` all JSON Web Tokens ever seen: for tests that look for leaks.
    """

    def __init__(self, clock: Clock, apps: Mapping[int, App]) -> None:
        self._clock = clock
        self._apps = apps
        self._tokens: dict[str, InstallationToken] = {}
        self.issued: list[str] = []
        self.shown: set[str] = set()

    def issue(
        self,
        installation: Installation,
        repositories: Iterable[Home] | None = None,
        permissions: Mapping[str, str] | None = None,
        narrowed_by: Iterable[str] | None = None,
    ) -> InstallationToken:
        """Return a new token of an installation; `narrowed_by` are the keys of a request that narrow it."""
        granted = dict(permissions) if permissions else dict(installation.permissions)
        chosen = None if repositories is None else list(repositories)
        expires_at = self._clock.now() + TOKEN_LIFETIME
        value = "ghs_" + secrets.token_hex(18)
        self.issued.append(value)
        granted |= {"metadata": "read"}
        narrowed = None if narrowed_by is None else frozenset(narrowed_by)
        self._tokens[value] = InstallationToken(value, installation, expires_at, granted, chosen, narrowed)
        return self._tokens[value]

    def find(self, value: str) -> InstallationToken:
        """Return a token that is still valid; raises a 401 `ApiError` otherwise."""
        token = self._tokens.get(value)
        if token is None or token.expires_at <= self._clock.now():
            raise ApiError(401, "Bad credentials")
        if token.installation.id not in token.installation.app.installations:
            raise ApiError(401, "Bad credentials")
        if token.installation.suspended_at:
            raise ApiError(403, "This installation has been suspended")
        return token

    @property
    def all(self) -> list[InstallationToken]:
        """Return every token that was issued and not revoked."""
        return list(self._tokens.values())

    def expire_all(self) -> None:
        """Expire all issued tokens now, as if an hour had passed, without moving the clock."""
        for token in self._tokens.values():
            token.expires_at = self._clock.now()

    def revoke(self, token: InstallationToken) -> None:
        """Forget a token."""
        self._tokens.pop(token.value, None)

    def app_of(self, encoded: str) -> App:
        """Return the App that signed a JSON Web Token; raises GitHub's 401 `ApiError` otherwise."""
        self.shown.add(encoded)
        try:
            app = self._apps.get(_claimed_app(encoded))
        except (jwt.InvalidTokenError, KeyError, TypeError, ValueError):
            raise ApiError(401, NOT_DECODED, mistake=True) from None
        if app is None:
            # Seen in https://github.com/actions/create-github-app-token/issues/76
            raise ApiError(404, "Integration not found")
        try:
            issued, expires = _times(encoded, app.private_key)
        except jwt.InvalidTokenError:
            # A key of another App, too: https://github.com/actions/create-github-app-token/issues/153
            raise ApiError(401, NOT_DECODED) from None
        self._check_times(issued, expires)
        return app

    def _check_times(self, issued: int, expires: int) -> None:
        current = self._clock.now().timestamp()
        if issued > current + CLOCK_DRIFT.total_seconds():
            raise ApiError(401, "'Issued at' claim ('iat') must be an Integer representing the time in the past")
        if expires <= current:
            raise ApiError(401, "'Expiration time' claim ('exp') must be a numeric value in the future")
        if expires > current + (JWT_LIFETIME + CLOCK_DRIFT).total_seconds():
            raise ApiError(401, "'Expiration time' claim ('exp') is too far in the future", mistake=True)


@cache
def new_private_key(number: int) -> str:
    """Return an RSA key as PEM; one per App, cached in the process because generation is slow."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption()).decode()


# A bot sends the same token with each request, and verifying one takes as long as answering a request.
@lru_cache(maxsize=1000)
def _claimed_app(encoded: str) -> int:
    return int(jwt.decode(encoded, options={"verify_signature": False})["iss"])


@lru_cache(maxsize=1000)
def _times(encoded: str, private_key: str) -> tuple[int, int]:
    """Return when a token was issued and when it expires; raise `jwt.InvalidTokenError` for another App's."""
    options = {"verify_exp": False, "verify_iat": False, "require": ["iat", "exp", "iss"]}
    claims = jwt.decode(encoded, _public_key(private_key), algorithms=["RS256"], options=options)  # type: ignore[arg-type]
    return claims["iat"], claims["exp"]


@cache
def _public_key(private_key: str) -> rsa.RSAPublicKey:
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    key = load_pem_private_key(private_key.encode(), password=None)
    assert isinstance(key, rsa.RSAPrivateKey)
    return key.public_key()
