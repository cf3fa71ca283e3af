"""Fixtures of the tests that kill, mislead and disturb the bot."""

from __future__ import annotations

import asyncio

import pytest

from bot.aws import Aws
from sandbox.bucket import BucketServer
from tests.bucket import World
from tests.robustness.conversation import NightlyMoves
from tests.robustness.crashes import Undisturbed, watch
from tests.robustness.nights import Nights


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Return how the conversations go where nothing happens."""
    return asyncio.run(watch(tmp_path_factory.mktemp("undisturbed")))


@pytest.fixture(scope="session")
def undisturbed_nights(
    bucket_server: BucketServer, bucket_aws: Aws, tmp_path_factory: pytest.TempPathFactory
) -> Undisturbed:
    """Return how nights go that a lab hears of, and of which it uploads results, where nothing happens."""
    world = World(bucket_server, bucket_aws)
    world.create()
    return asyncio.run(watch(tmp_path_factory.mktemp("nights"), [Nights, NightlyMoves], world))
