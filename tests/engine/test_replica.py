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


def processes_in(folder: Path) -> set[str]:
    """Return the other processes that work in a folder, or have a file in it open.

    Not those that this process has started: PostgreSQL's come and go, and a fork server may be that of another process.
    """
    return {
        place.parts[2]
        for place in (*Path("/proc").glob("[0-9]*/cwd"), *Path("/proc").glob("[0-9]*/fd/*"))
        if place.parts[2] != str(os.getpid()) and target_of(place).is_relative_to(folder)
    }


def open_files() -> set[Path]:
    """Return what this process has open."""
    return {target_of(place) for place in Path("/proc/self/fd").iterdir()}


def target_of(link: Path) -> Path:
    """Return where a link of `/proc` leads; to `/` if its process has ended meanwhile."""
    try:
        return link.readlink()
    except OSError:
        return Path("/")


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a process")
async def test_a_replica_whose_start_is_cancelled_is_ended(sqlite_url: str, tmp_path: Path) -> None:
    async def start() -> None:
        async with replica(sqlite_url, tmp_path / "world.db", QUICK, doomed=True) as process:
            await process.ended()

    starting = asyncio.create_task(start())
    await until((tmp_path / "world.db").exists)
    assert processes_in(tmp_path)
    starting.cancel()
    await asyncio.gather(starting, return_exceptions=True)
    assert processes_in(tmp_path) == set()


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux lists the children of a process")
async def test_a_launch_that_is_cancelled_leaves_neither_a_process_nor_a_socket(tmp_path: Path) -> None:
    # The very first launch also starts the fork server, which stays.
    await (await launch("platform", env=os.environ)).communicate()
    old_files = open_files()
    for steps in range(STEPS):
        launching = asyncio.create_task(launch("http.server", "0", env=os.environ, cwd=tmp_path))
        for _ in range(steps):
            await asyncio.sleep(0)
        launching.cancel()
        await asyncio.wait({launching})
        assert launching.cancelled(), steps
    # The fork server forks one after the other: now it has done all of those before.
    await (await launch("platform", env=os.environ)).communicate()
    assert processes_in(tmp_path) == set()
    await until(lambda: open_files() <= old_files)
