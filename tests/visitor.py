"""A browser without a window: it has cookies, and signs in with the sandbox."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from html import unescape
from http.cookies import SimpleCookie

import aiohttp
from yarl import URL

from sandbox import GitHubSandbox
from tests.conversations.town import Town

TOKEN = re.compile(r'name="token" value="([^"]+)"')
SIGN_IN = {
    "GITHUB_CLIENT_SECRET": "a secret of the sandbox alone",
    "GITHUB_CLIENT_ID": "Iv23liNightjarTests",
    "SESSION_SECRET": "0123456789abcdef0123456789abcdef",
}
"""What the environment of a bot has where people can sign in; `may_sign_in` tells the sandbox."""


@dataclass(frozen=True)
class Shown:
    """An answer: `set_cookies` are the whole headers."""

    status: int
    headers: Mapping[str, str]
    text: str
    set_cookies: tuple[str, ...]

    @property
    def location(self) -> str:
        """Return where a person is sent."""
        return self.headers["Location"]

    @property
    def form_token(self) -> str:
        """Return the token of the forms of a page."""
        found = TOKEN.search(self.text)
        assert found is not None, "the page has no form"
        return unescape(found[1])


@dataclass
class Visitor:
    """A person at the pages of a bot; each has cookies of their own."""

    url: str
    client: aiohttp.ClientSession
    cookies: dict[str, str] = field(default_factory=dict)

    async def get(self, path: str, **headers: str) -> Shown:
        """Open an address of the bot, or a whole one that somebody was sent to."""
        return await self._ask("GET", path, {"Accept": "text/html", **headers})

    async def post(self, path: str, form: Mapping[str, str], origin: str | None = "", **headers: str) -> Shown:
        """Send a form, as from a page of the bot; another `origin` is another site's page, None that of no browser."""
        if origin is not None:
            headers["Origin"] = origin or self.url
        return await self._ask("POST", path, {"Accept": "text/html", **headers}, form)

    async def begin(self, destination: str = "/") -> URL:
        """Press *Sign in*; return the address of GitHub's page."""
        shown = await self.get(f"/login?next={destination}")
        assert shown.status == 303, shown.text
        return URL(shown.location, encoded=True)

    async def agree(self, asked: URL, login: str) -> str:
        """Say on GitHub's page who one is; return the address that GitHub sends one back to."""
        form = {**asked.query, "by": login}
        async with self.client.post(asked.with_query(None), data=form, allow_redirects=False) as answer:
            assert answer.status == 302, await answer.text()
            return answer.headers["Location"]

    async def sign_in(self, login: str, destination: str = "/") -> Shown:
        """Sign in; return the answer to what GitHub sent one back with."""
        return await self.get(await self.agree(await self.begin(destination), login))

    async def _ask(
        self, method: str, path: str, headers: Mapping[str, str], form: Mapping[str, str] | None = None
    ) -> Shown:
        url = URL(path if "://" in path else self.url + path, encoded=True)
        sent = {**headers, "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items())}
        async with self.client.request(method, url, headers=sent, data=form, allow_redirects=False) as answer:
            text, set_cookies = await answer.text(), tuple(answer.headers.getall("Set-Cookie", []))
            for header in set_cookies:
                for name, morsel in SimpleCookie(header).items():
                    if morsel["max-age"] == "0":
                        self.cookies.pop(name, None)
                    else:
                        self.cookies[name] = morsel.value
            return Shown(answer.status, answer.headers, text, set_cookies)


def may_sign_in(town: Town) -> None:
    """Register at the sandbox what a bot with the environment `SIGN_IN` shows."""
    town.app.client_id, town.app.client_secret = SIGN_IN["GITHUB_CLIENT_ID"], SIGN_IN["GITHUB_CLIENT_SECRET"]
    town.app.callback_urls = (f"{town.url}/login/callback",)


def asked_of(github: GitHubSandbox, route: str) -> int:
    """Return how many requests of a route were made with people's own tokens."""
    return sum(one.route == route and one.token == "person" for one in github.requests.records)
