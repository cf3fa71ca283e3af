"""Exchange the code that GitHub sends back for the App and its secrets, once.

https://docs.github.com/rest/apps/apps#create-a-github-app-from-a-manifest
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import aiohttp
from nightjar_formats.strict_json import read_json
from pydantic import SecretStr

from bot.app.setup.addresses import GitHubSite
from bot.app.setup.texts import ENV_HEADER
from bot.config.environment import SHORTEST_WEBHOOK_SECRET
from bot.config.private_key import one_line, pem_of, rsa_key
from bot.core.patterns import Pattern
from bot.core.web_json import read_body

CONVERSION = "{api}/app-manifests/{code}/conversions"
TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=10)
LARGEST_ANSWER = 256 * 1024
"""Bytes; GitHub's has about 5 KiB."""
HEADERS = {"Accept": "application/vnd.github+json", "User-Agent": "nightjar"}
CREATED = 201
REFUSED = (404, 410, 422)
CODE = Pattern(r"[A-Za-z0-9_-]{1,200}")
_PLAIN = Pattern(r"[!#-&(-\[\]-~]{1,500}")
"""A value that a line of the file can hold without quotes: it has no quotes, spaces or backslashes."""
_SLUG = Pattern(r"[A-Za-z0-9_.-]{1,100}")
SESSION_SECRET_BYTES = 32


class CodeRefused(Exception):
    """GitHub does not know the code, or no longer."""


class ConversionAway(Exception):
    """GitHub did not answer, or with an error of its own; the code may still work."""


class OddConversion(Exception):
    """GitHub's answer lacks something, which the error names."""


@dataclass(frozen=True, slots=True)
class CreatedApp:
    """An App that GitHub has just created. Its secrets show themselves to nobody."""

    id: int
    slug: str
    page: str
    client_id: str
    private_key: SecretStr
    webhook_secret: SecretStr
    client_secret: SecretStr

    def environment(self, site: GitHubSite) -> str:
        """Return the text of `nightjar.env`: the variables that commands read, one a line."""
        lines = {
            "GITHUB_APP_ID": str(self.id),
            "GITHUB_PRIVATE_KEY": one_line(self.private_key.get_secret_value()),
            "GITHUB_WEBHOOK_SECRET": self.webhook_secret.get_secret_value(),
            "GITHUB_CLIENT_ID": self.client_id,
            "GITHUB_CLIENT_SECRET": self.client_secret.get_secret_value(),
            "SESSION_SECRET": secrets.token_hex(SESSION_SECRET_BYTES),
            **({} if site.is_github_com else {"GITHUB_API_URL": site.api}),
        }
        header = ENV_HEADER.format(name=self.slug, page=self.page)
        return header + "".join(f"{name}={value}\n" for name, value in lines.items())


async def convert(session: aiohttp.ClientSession, site: GitHubSite, code: str) -> CreatedApp:
    """Return the App of a code. Raises CodeRefused, ConversionAway or OddConversion; none of them repeats a value."""
    url = CONVERSION.format(api=site.api, code=code)
    try:
        async with session.post(url, headers=HEADERS, timeout=TIMEOUT, allow_redirects=False) as answer:
            raw = await read_body(answer, LARGEST_ANSWER) if answer.status == CREATED else b""
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ConversionAway(type(error).__name__) from None
    if answer.status in REFUSED:
        raise CodeRefused
    if answer.status != CREATED:
        raise ConversionAway(f"status {answer.status}")
    try:
        found = read_json(raw)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise OddConversion("JSON")
    return created_app(found, site)


def created_app(found: Mapping[str, Any], site: GitHubSite) -> CreatedApp:
    """Read GitHub's answer. Raises OddConversion, which names what is missing."""
    pem, number, slug = found.get("pem"), found.get("id"), found.get("slug")
    if not isinstance(number, int) or isinstance(number, bool) or number <= 0:
        raise OddConversion("id")
    if not isinstance(slug, str) or not _SLUG.fullmatch(slug):
        raise OddConversion("slug")
    if not isinstance(pem, str) or not pem.isascii() or rsa_key(pem_of(pem)) is None:
        raise OddConversion("pem")
    for name in ("webhook_secret", "client_id", "client_secret"):
        if not isinstance(found.get(name), str) or not _PLAIN.fullmatch(found[name]):
            raise OddConversion(name)
    if len(found["webhook_secret"]) < SHORTEST_WEBHOOK_SECRET:
        raise OddConversion("webhook_secret")
    page = str(found.get("html_url", ""))
    return CreatedApp(
        id=number,
        slug=slug,
        page=page if page.startswith(f"{site.web}/") and _PLAIN.fullmatch(page) else f"{site.web}/apps/{slug}",
        client_id=found["client_id"],
        private_key=SecretStr(pem),
        webhook_secret=SecretStr(found["webhook_secret"]),
        client_secret=SecretStr(found["client_secret"]),
    )
