"""Fixtures of the engine's tests."""

from collections.abc import AsyncIterator

import pytest

from bot.engine.database import Database


@pytest.fixture
async def database(database_url: str) -> AsyncIterator[Database]:
    """Return an open database, of each kind in turn."""
    opened = Database(database_url)
    await opened.open()
    yield opened
    await opened.close()
