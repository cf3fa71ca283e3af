"""Helpers that the tests of the GitHub client share."""

from __future__ import annotations

from functools import cache
from typing import Any

import aiohttp
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.github.access import InstalledRepository, WritePermissions
from bot.github.app import GitHubApp
from bot.github.client import GitHub
from tests.github.scripted import Say, ScriptedGitHub

APP_ID = 7
INSTALLATION = 42
REPOSITORY = 1
EVERYTHING = frozenset({"actions", "checks", "contents", "issues", "pull_requests", "statuses"})


@cache
def private_key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(public_exponent=65537, key_size=2048)


@cache
def pem() -> str:
    form = serialization.PrivateFormat.TraditionalOpenSSL
    return private_key().private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption()).decode()


def quota(remaining: int, *, limit: int = 5000, reset: int = 4_102_444_800, resource: str = "core") -> dict[str, str]:
    """Return the headers with which GitHub reports a primary quota."""
    return {
        "x-ratelimit-limit": str(limit),
        "x-ratelimit-remaining": str(remaining),
        "x-ratelimit-reset": str(reset),
        "x-ratelimit-resource": resource,
    }


def refused(status: int, message: str = "Not Found", **headers: str) -> Say:
    return Say(status, {"message": message}, {name.replace("_", "-"): value for name, value in headers.items()})


def client_of(
    app: GitHubApp, installation: int = INSTALLATION, *, permissions: WritePermissions = EVERYTHING
) -> GitHub:
    """Return a client with the permissions of all effects."""
    return app.client(InstalledRepository(installation, REPOSITORY), permissions)


class Seen:
    """The events that metrics would record."""

    def __init__(self) -> None:
        self.requests: list[tuple[str, str, int]] = []
        self.quotas: list[tuple[str, str, int, int, int]] = []

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        assert seconds >= 0
        self.requests.append((method, route, status))

    def quota(self, installation: str, resource: str, remaining: int, limit: int, reset: int) -> None:
        self.quotas.append((installation, resource, remaining, limit, reset))


class Apps:
    """Create Apps that use the scripted GitHub."""

    def __init__(self, scripted: ScriptedGitHub, session: aiohttp.ClientSession, **options: Any) -> None:
        self._scripted, self._session, self._options = scripted, session, options

    def __call__(self, **options: Any) -> GitHubApp:
        usual = {"api_url": self._scripted.url, "app_id": APP_ID, "private_key": pem()}
        return GitHubApp(self._session, **{**usual, **self._options, **options})
