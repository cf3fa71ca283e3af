"""Fixtures of the conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conversations.town import Town, Works, works
from tests.conversations.town import town as start_town


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    """A town on SQLite with everything switched on."""
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db") as town:
        yield town


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Works]:
    """A town with a Jenkins."""
    async with works(f"sqlite:///{tmp_path}/nightjar.db") as site:
        yield site
