from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.handlers.driver import World, a_world
from tests.handlers.labs import Labs, a_lab


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


@pytest.fixture
async def labs(tmp_path: Path) -> AsyncIterator[Labs]:
    async with a_lab(tmp_path) as labs:
        yield labs
