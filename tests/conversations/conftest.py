"""Fixtures of the conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.conversations.town import Town, Works, town, works


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Town]:
    """A town on SQLite with everything switched on."""
    async with town(f"sqlite:///{tmp_path}/nightjar.db") as place:
        yield place


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Works]:
    """A town with a Jenkins."""
    async with works(f"sqlite:///{tmp_path}/nightjar.db") as place:
        yield place
