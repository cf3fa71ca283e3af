"""Fixtures of the tests that kill and disturb the bot."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from bot.aws.client import Aws
from sandbox.bucket import BucketServer
from tests.bucket import World
from tests.once import made_once
from tests.robustness.conversation import NightlyMoves
from tests.robustness.crashes import Undisturbed, watch
from tests.robustness.nightly_runs import NightlyRuns

AT_ONCE = 3
"""How many of these tests run at once, with any number of workers: they mostly wait, but not always."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Distribute these tests over the workers in turn, because a file's slow tests are next to each other."""
    robustness_tests = [item for item in items if item.path.is_relative_to(Path(__file__).parent)]
    for number, item in enumerate(robustness_tests):
        item.add_marker(pytest.mark.xdist_group(f"robustness {number % AT_ONCE}"))


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    """Return the requests and results of the conversations without faults."""
    return made_once(
        tmp_path_factory, "undisturbed", lambda: asyncio.run(watch(tmp_path_factory.mktemp("undisturbed")))
    )


@pytest.fixture(scope="session")
def undisturbed_nightly_runs(
    bucket_server: BucketServer, bucket_aws: Aws, tmp_path_factory: pytest.TempPathFactory
) -> Undisturbed:
    """Return the requests and results of nightly runs without faults.

    A lab is notified of each run and uploads its results.
    """

    def make() -> Undisturbed:
        world = World(bucket_server, bucket_aws)
        world.create()
        return asyncio.run(watch(tmp_path_factory.mktemp("nightly_runs"), [NightlyRuns, NightlyMoves], world))

    return made_once(tmp_path_factory, "undisturbed-nightly-runs", make)
