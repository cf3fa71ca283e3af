"""A town where people can sign in, with a private repository that hubot may read; one for all tests in this folder."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from tests.conversations.town import Town, town
from tests.visitor import SIGN_IN, Visitor, may_sign_in

CONFIG = """
repositories:
  octocat/compiler:
    nightly:
  octocat/secret:
    nightly:
  octocat/hidden:
    nightly:
"""


@pytest.fixture(autouse=True)
def _all_closed() -> None:
    """Let connections outlive a test: the town lives for the session.

    This replaces the fixture of the same name.
    """


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def sign_in_town(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Town]:
    """Return the town.

    `octocat/elsewhere` exists on GitHub and is readable for hubot, but the bot does not work in it.
    """
    folder = tmp_path_factory.mktemp("sign-in")
    async with town(f"sqlite:///{folder}/nightjar.db", config=CONFIG, environment=SIGN_IN) as place:
        for name in ("secret", "hidden", "elsewhere"):
            place.app.install(place.github.create_repository(f"octocat/{name}", private=True, people={"hubot": "read"}))
        may_sign_in(place)
        await place.started()
        yield place


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(sign_in_town: Town) -> AsyncIterator[Visitor]:
    """Return somebody who is not signed in."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as client:
        yield Visitor(sign_in_town.url, client)


@pytest.fixture
def second_visitor(visitor: Visitor) -> Visitor:
    """Return somebody else, with another browser."""
    return Visitor(visitor.url, visitor.client)
