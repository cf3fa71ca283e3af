"""Fixtures of the tests that kill, mislead and disturb the bot."""

from __future__ import annotations

import asyncio

import pytest

from tests.robustness.crashes import Undisturbed, watch


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Return how the conversations go where nothing happens."""
    return asyncio.run(watch(tmp_path_factory.mktemp("undisturbed")))
