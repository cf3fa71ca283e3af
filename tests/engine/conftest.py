"""Fixtures of the engine's tests."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from bot.engine.database import Database
from tests.engine.toy import World


@pytest.fixture
async def database(url_with_tables: str) -> AsyncIterator[Database]:
    """Return an open database, of each kind in turn."""
    opened = Database(url_with_tables)
    await opened.open()
    yield opened
    await opened.close()


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return the file that holds the world, which replicas share."""
    return tmp_path / "world.db"


@pytest.fixture
def world(place: Path) -> Iterator[World]:
    """Return a world without events."""
    made = World(place)
    yield made
    made.close()
