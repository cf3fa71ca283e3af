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

STEPS = 6
"""More than a launch takes from its beginning until it waits for the new process."""


def descendants(pid: str = "self") -> set[str]:
    """Return the processes that a process has started, directly or not, and that are still running."""
    children = {
        child for task in Path(f"/proc/{pid}/task").iterdir() for child in (task / "children").read_text().split()
    }
    return children.union(*map(descendants, children))


def open_files() -> int:
    """Return how many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a process")
async def test_a_replica_whose_start_is_cancelled_is_ended(sqlite_url: str, tmp_path: Path) -> None:
    # The very first launch also starts the fork server, which stays.
    await (await launch("platform", env=os.environ)).communicate()
    old_processes = descendants()

    async def start() -> None:
        async with replica(sqlite_url, tmp_path / "world.db", QUICK, doomed=True) as process:
            await process.ended()

    starting = asyncio.create_task(start())
    await until((tmp_path / "world.db").exists)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    assert descendants() - old_processes == set()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a process")
async def test_a_launch_that_is_cancelled_leaves_neither_a_process_nor_a_socket() -> None:
    await (await launch("platform", env=os.environ)).communicate()
    old_processes, old_count = descendants(), open_files()
    for steps in range(STEPS):
        launching = asyncio.create_task(launch("http.server", "0", env=os.environ))
        for _ in range(steps):
            await asyncio.sleep(0)
        launching.cancel()
        await asyncio.wait({launching})
        assert launching.cancelled(), steps
        assert descendants() == old_processes
        await until(lambda: open_files() == old_count)
