from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from bot.engine.database import Database
from bot.github.app import GitHubApp
from bot.github.client import GitHub
from tests.github.scripted import ScriptedGitHub
from tests.github.support import INSTALLATION, Apps, Seen, client_of
from tests.github.virtual import JumpingTime


@pytest.fixture
async def database(url_with_tables: str) -> AsyncIterator[Database]:
    """Return an open database, of each kind in turn."""
    opened = Database(url_with_tables)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
async def scripted() -> AsyncIterator[ScriptedGitHub]:
    scripted = ScriptedGitHub()
    async with scripted.serving():
        yield scripted


@pytest.fixture
def seen() -> Seen:
    return Seen()


@pytest.fixture
def jumping() -> JumpingTime:
    return JumpingTime()


@pytest.fixture
async def make_app(scripted: ScriptedGitHub, jumping: JumpingTime, seen: Seen) -> AsyncIterator[Apps]:
    async with aiohttp.ClientSession() as session:
        yield Apps(scripted, session, timing=jumping.timing(), observer=seen)


@pytest.fixture
def scripted_app(make_app: Apps) -> GitHubApp:
    return make_app()


@pytest.fixture
def gh(scripted_app: GitHubApp) -> GitHub:
    return client_of(scripted_app, INSTALLATION)
