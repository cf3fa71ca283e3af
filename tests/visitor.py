"""A minimal browser: it stores cookies, and signs in at the sandbox."""

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
        """Return the address of a redirect."""
        return self.headers["Location"]

    @property
    def form_token(self) -> str:
        """Return the token of the forms of a page."""
        found = TOKEN.search(self.text)
        assert found is not None, "the page has no form"
        return unescape(found[1])


@dataclass
class Visitor:
    """A person who uses the pages of a bot; each has their own cookies."""

    url: str
    client: aiohttp.ClientSession
    cookies: dict[str, str] = field(default_factory=dict)

    async def get(self, path: str, **headers: str) -> Shown:
        """Open a path of the bot, or a complete address, such as that of a redirect."""
        return await self._ask("GET", path, {"Accept": "text/html", **headers})

    async def post(self, path: str, form: Mapping[str, str], origin: str | None = "", **headers: str) -> Shown:
        """Send a form, as a page of the bot does; `origin` may be another site's, or None for a client without one."""
        if origin is not None:
            headers["Origin"] = origin or self.url
        return await self._ask("POST", path, {"Accept": "text/html", **headers}, form)

    async def begin(self, destination: str = "/") -> URL:
        """Press *Sign in*; return the address of GitHub's page."""
        shown = await self.get(f"/login?next={destination}")
        assert shown.status == 303, shown.text
        return URL(shown.location, encoded=True)

    async def agree(self, asked: URL, login: str) -> str:
        """Choose an account on GitHub's page; return the address to which GitHub redirects."""
        form = {**asked.query, "by": login}
        async with self.client.post(asked.with_query(None), data=form, allow_redirects=False) as answer:
            assert answer.status == 302, await answer.text()
            return answer.headers["Location"]

    async def sign_in(self, login: str, destination: str = "/") -> Shown:
        """Sign in; return the bot's answer to GitHub's redirect."""
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
    """Register the client ID and secret of `SIGN_IN` at the sandbox."""
    town.app.client_id, town.app.client_secret = SIGN_IN["GITHUB_CLIENT_ID"], SIGN_IN["GITHUB_CLIENT_SECRET"]
    town.app.callback_urls = (f"{town.url}/login/callback",)


def asked_of(github: GitHubSandbox, route: str) -> int:
    """Return the number of requests of a route with people's own tokens."""
    return sum(one.route == route and one.token == "person" for one in github.requests.records)
