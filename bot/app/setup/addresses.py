"""Addresses that a person enters: GitHub's own, and that of this bot. Pure; errors are texts for the person."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from urllib.parse import urlsplit

from bot.app.setup.texts import (
    BAD_GITHUB_URL,
    BAD_ORGANIZATION,
    BAD_PUBLIC_URL,
    GITHUB_URL_HAS_PATH,
    NO_PUBLIC_URL,
    NOT_HTTPS_PUBLIC_URL,
    UNREACHABLE_PUBLIC_URL,
)
from bot.core.patterns import Pattern
from bot.core.urls import encrypted_url, http_url

GITHUB = "https://github.com"
WEBHOOK = "/webhook"
SIGN_IN_CALLBACK = "/login/callback"
CLOUD = ".ghe.com"
PRIVATE_NAMES = (".local", ".localhost", ".internal", ".lan", ".home.arpa")
"""Endings of names that mean nothing outside a private network."""
_LOGIN = Pattern(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,37}[A-Za-z0-9])?")


@dataclass(frozen=True, slots=True)
class GitHubSite:
    """One GitHub; `web` is the address of its pages, without a slash at the end."""

    web: str = GITHUB

    @property
    def host(self) -> str:
        """Return the host with its port."""
        return urlsplit(self.web).netloc

    @property
    def is_github_com(self) -> bool:
        """Whether the API has the default address."""
        return self.web == GITHUB

    @property
    def needs_public_address(self) -> bool:
        """Whether webhooks come over the internet."""
        return self.is_github_com or self.host.endswith(CLOUD)

    @property
    def api(self) -> str:
        """Return the address of the REST API.

        https://docs.github.com/enterprise-server/rest/enterprise-admin and
        https://docs.github.com/enterprise-cloud@latest/admin/data-residency/about-github-enterprise-cloud-with-data-residency
        """
        if self.needs_public_address:
            return self.web.replace("://", "://api.", 1)
        return f"{self.web}/api/v3"

    def apps_page(self, organization: str) -> str:
        """Return the page that lists the Apps of an account."""
        return f"{self.web}/{_settings(organization)}/apps"

    def new_app_page(self, organization: str) -> str:
        """Return the address to which a browser posts a manifest."""
        return f"{self.web}/{_settings(organization)}/apps/new"


def github_site(text: str) -> GitHubSite:
    """Return the GitHub of an address, https://github.com for an empty one. Raises ValueError."""
    written = text.strip() or GITHUB
    try:
        url = encrypted_url(_with_scheme(written))
    except ValueError as error:
        raise ValueError(BAD_GITHUB_URL.format(problem=error)) from None
    if path := urlsplit(url).path.strip("/"):
        raise ValueError(BAD_GITHUB_URL.format(problem=GITHUB_URL_HAS_PATH.format(path=path)))
    return GitHubSite(GITHUB if urlsplit(url).hostname in ("www.github.com", "api.github.com") else url)


def public_address(text: str, site: GitHubSite) -> str:
    """Return the bot's own address as public_url in app.yaml has it. Raises ValueError."""
    if not text.strip():
        raise ValueError(NO_PUBLIC_URL)
    try:
        url = http_url(_with_scheme(text.strip())).removesuffix(WEBHOOK)
    except ValueError as error:
        raise ValueError(BAD_PUBLIC_URL.format(problem=error)) from None
    if site.needs_public_address:
        host = urlsplit(url).hostname or ""
        if _is_private(host):
            raise ValueError(UNREACHABLE_PUBLIC_URL.format(host=host))
        if not url.startswith("https://"):
            raise ValueError(NOT_HTTPS_PUBLIC_URL)
    return url


def organization_name(text: str) -> str:
    """Return the name of an organization, also from its address; empty for a personal account. Raises ValueError."""
    name = text.strip().removeprefix("@")
    if "://" in name or "." in name.partition("/")[0]:
        # A pasted address: https://github.com/octo-org, or https://github.com/orgs/octo-org/repositories.
        name = urlsplit(_with_scheme(name)).path.strip("/").removeprefix("orgs/").partition("/")[0] or name
    if name and not _LOGIN.fullmatch(name):
        raise ValueError(BAD_ORGANIZATION.format(name=name[:60]))
    return name


def _with_scheme(text: str) -> str:
    return text if "://" in text else f"https://{text}"


def _settings(organization: str) -> str:
    return f"organizations/{organization}/settings" if organization else "settings"


def _is_private(host: str) -> bool:
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith(PRIVATE_NAMES)
