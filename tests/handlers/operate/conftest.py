"""One town for all tests in this folder, and people with browsers."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio

from tests.handlers.operate.places import OperatedTown, operated_town
from tests.visitor import Visitor


@pytest.fixture(autouse=True)
def _all_closed() -> None:
    """Let connections outlive a test: the town lives for the session.

    This replaces the fixture of the same name.
    """


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def operated(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[OperatedTown]:
    """Return the town."""
    async with operated_town(tmp_path_factory.mktemp("operate")) as place:
        yield place


@pytest_asyncio.fixture(loop_scope="session")
async def visitor(operated: OperatedTown) -> AsyncIterator[Visitor]:
    """Return somebody who is not signed in."""
    async with aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as client:
        yield Visitor(operated.town.url, client)


@pytest.fixture
def second_visitor(visitor: Visitor) -> Visitor:
    """Return somebody else, with another browser."""
    return Visitor(visitor.url, visitor.client)
