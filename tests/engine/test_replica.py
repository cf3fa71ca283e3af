"""A process started by a test ends with that test."""

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
    """Return the processes that this one started and that are still running."""
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a process")
async def test_a_replica_whose_start_is_cancelled_is_ended(sqlite_url: str, tmp_path: Path) -> None:
    # The very first launch also starts the fork server, which stays.
    await (await launch("platform", env=os.environ)).communicate()
    old_children = children()

    async def start() -> None:
        async with replica(sqlite_url, tmp_path / "world.db", QUICK, doomed=True) as process:
            await process.ended()

    starting = asyncio.create_task(start())
    await until((tmp_path / "world.db").exists)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    assert children() - old_children == set()
