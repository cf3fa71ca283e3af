"""People who sign in to an App: codes, and tokens that act for a person.

https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from sandbox.clock import Clock
from sandbox.errors import BAD_CREDENTIALS, ApiError
from sandbox.model.apps import App
from sandbox.users import User

if TYPE_CHECKING:
    from sandbox.model.repository import Repository

CODE_LIFETIME = timedelta(minutes=10)
PERSON_TOKEN_LIFETIME = timedelta(hours=8)
REFRESH_TOKEN_LIFETIME = timedelta(days=184)
BAD_CODE = "bad_verification_code"
WRONG_CLIENT = "incorrect_client_credentials"
WRONG_REDIRECT = "redirect_uri_mismatch"


class SignInError(Exception):
    """An exchange of a code was refused; the text is the name of GitHub's error."""


@dataclass(frozen=True)
class SignInCode:
    """The code with which GitHub sends a person back; it works once."""

    app: App
    user: User
    redirect_uri: str
    challenge: str
    expires_at: datetime


@dataclass(eq=False)
class UserToken:
    """A user access token: `ghu_…`. It gives access to what both the App and the person may see."""

    value: str
    app: App
    user: User
    expires_at: datetime | None

    def reads(self, repository: Repository) -> bool:
        """Return whether a repository is visible with the token."""
        if not repository.private:
            return True
        return self.app.covers(repository) is not None and repository.role(self.user) != "none"


class SignIns:
    """Makes codes and exchanges them for tokens; `issued` are all tokens ever made, for tests that look for leaks."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._codes: dict[str, SignInCode] = {}
        self._tokens: dict[str, UserToken] = {}
        self.issued: list[str] = []

    @property
    def valid(self) -> list[str]:
        """Return the tokens that work."""
        return list(self._tokens)

    def authorize(self, app: App, user: User, redirect_uri: str, challenge: str) -> str:
        """Return a code for a person who agreed."""
        code = secrets.token_hex(10)
        self._codes[code] = SignInCode(app, user, redirect_uri, challenge, self._clock.now() + CODE_LIFETIME)
        return code

    def exchange(self, app: App, code: str, redirect_uri: str, verifier: str) -> UserToken:
        """Exchange a code for a token; a code works only once. Raises `SignInError`."""
        grant = self._codes.pop(code, None)
        if grant is None or grant.app is not app or grant.expires_at <= self._clock.now():
            raise SignInError(BAD_CODE)
        if redirect_uri and redirect_uri != grant.redirect_uri:
            raise SignInError(WRONG_REDIRECT)
        if grant.challenge and not hmac.compare_digest(grant.challenge, challenge_of(verifier)):
            raise SignInError(BAD_CODE)
        expires_at = self._clock.now() + PERSON_TOKEN_LIFETIME if app.person_tokens_expire else None
        token = UserToken(f"ghu_{secrets.token_hex(18)}", app, grant.user, expires_at)
        self._tokens[token.value] = token
        self.issued.append(token.value)
        return token

    def find(self, value: str) -> UserToken:
        """Return a token that is still valid; raises a 401 `ApiError` otherwise."""
        token = self._tokens.get(value)
        if token is None or (token.expires_at is not None and token.expires_at <= self._clock.now()):
            raise ApiError(401, BAD_CREDENTIALS)
        return token

    def revoke(self, value: str) -> None:
        """Forget a token."""
        self._tokens.pop(value, None)


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a PKCE verifier (RFC 7636, 4.2)."""
    return base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
