"""A process of the tests' own ends with the test that started it."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest

from tests.engine.replica import replica
from tests.engine.running import QUICK
from tests.fork_server import launch
from tests.waiting import until


def children() -> set[str]:
    """Return the processes that this one has started and that have not ended."""
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a process")
async def test_a_replica_that_is_given_up_while_it_starts_has_ended(sqlite_url: str, tmp_path: Path) -> None:
    # The first launch of all also starts the server of forks, which stays.
    await (await launch("platform", env=os.environ)).communicate()
    before = children()

    async def start() -> None:
        async with replica(sqlite_url, tmp_path / "world.db", QUICK, doomed=True) as it:
            await it.ended()

    starting = asyncio.create_task(start())
    await until((tmp_path / "world.db").exists)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    assert children() - before == set()
