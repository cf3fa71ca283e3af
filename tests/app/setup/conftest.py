"""A setup in its own folder, a simulated GitHub, and a browser without scripts."""

from __future__ import annotations

import html
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urljoin

import aiohttp
import pytest

from bot.app.setup.run import SetupPlace, open_port, setup_site
from bot.app.setup.site import SetupSite
from bot.cli.env_file import read_env_file
from bot.config.environment import Settings
from sandbox.github import GitHubSandbox
from sandbox.model.apps import App

HEADERS = {"Accept": "text/html"}


@dataclass
class Shown:
    """A page that a browser shows."""

    status: int
    url: str
    text: str
    headers: dict[str, str]

    def field(self, name: str) -> str:
        """Return the value of a field of a form."""
        area = re.search(rf'<textarea[^>]* name="{name}"[^>]*>\n(.*?)</textarea>', self.text, re.DOTALL)
        found = area or re.search(rf'name="{name}"[^>]* value="([^"]*)"', self.text)
        assert found is not None, self.text
        return html.unescape(found[1])

    @property
    def action(self) -> str:
        """Return the address of the first form with the method POST."""
        found = re.search(r'method="post" action="([^"]*)"', self.text)
        assert found is not None, self.text
        return urljoin(self.url, html.unescape(found[1]))


@dataclass
class SetupWalk:
    """A person with a browser.

    `announced` are the addresses that the process printed; `pages` are all pages shown.
    """

    github: GitHubSandbox
    folder: Path
    browser: aiohttp.ClientSession
    site: SetupSite
    announced: list[str]
    pages: list[Shown] = field(default_factory=list)

    @property
    def url(self) -> str:
        """Return the address of the setup, without a slash at the end."""
        return self.announced[0].partition("/setup")[0]

    async def get(self, path: str, **headers: str) -> Shown:
        """Open a page."""
        address = path if "://" in path else self.url + path
        async with self.browser.get(address, headers={**HEADERS, **headers}) as answer:
            return await self._shown(answer)

    async def post(self, address: str, **fields: str) -> Shown:
        """Send a form."""
        async with self.browser.post(urljoin(self.url, address), data=fields, headers=HEADERS) as answer:
            return await self._shown(answer)

    async def enter(self) -> Shown:
        """Open the printed address."""
        return await self.get(self.announced[-1])

    async def choose(self, **entered: str) -> Shown:
        """Send the form with the bot's address, for this GitHub by default."""
        form = (await self.get("/setup")).field("form")
        return await self.post(
            "/setup", **{"public_url": self.url, "owner": "", "github": self.github.url, **entered}, form=form
        )

    async def create(self, **entered: str) -> Shown:
        """Press the button, then GitHub's; return the page to which GitHub redirects the browser."""
        page = await self.choose(**entered)
        return await self.post(page.action, manifest=page.field("manifest"), create="1")

    def install(self) -> App:
        """Install the new App on the repository."""
        app = next(app for app in self.github.apps.values() if app.slug.startswith("nightjar"))
        app.install(self.github.repositories["octocat/compiler"])
        return app

    async def _shown(self, answer: aiohttp.ClientResponse) -> Shown:
        shown = Shown(answer.status, str(answer.url), await answer.text(), dict(answer.headers))
        self.pages.append(shown)
        return shown


def place_in(folder: Path, announced: list[str], env: Path | None = None) -> SetupPlace:
    """Return the place of a setup in a folder."""
    path = env or folder / "nightjar.env"

    def load_settings() -> Settings:
        return Settings.from_environment(read_env_file(path))

    return SetupPlace("127.0.0.1", 0, path, folder / "app.yaml", announced.append, announced.append, load_settings)


@asynccontextmanager
async def setup_walk(github: GitHubSandbox, folder: Path, env: Path | None = None) -> AsyncIterator[SetupWalk]:
    """Run a setup, and a browser for it."""
    announced: list[str] = []
    place = place_in(folder, announced, env)
    settings = place.load_settings() if place.env.exists() else None
    with open_port("127.0.0.1", 0) as listening:
        async with (
            setup_site(place, listening, settings) as site,
            aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as browser,
        ):
            yield SetupWalk(github, folder, browser, site, announced)


@pytest.fixture
async def github() -> AsyncIterator[GitHubSandbox]:
    made = GitHubSandbox()
    made.create_repository("octocat/compiler")
    async with made.serve():
        yield made


@pytest.fixture
async def walk(github: GitHubSandbox, tmp_path: Path) -> AsyncIterator[SetupWalk]:
    async with setup_walk(github, tmp_path) as walking:
        yield walking
        for app in github.apps.values():
            for secret in (app.webhook_secret or "never", app.client_secret, app.private_key.splitlines()[5]):
                assert not [page for page in walking.pages if secret in f"{page.url} {page.headers} {page.text}"]
