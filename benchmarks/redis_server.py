"""A Redis that appends each write to its file, and waits for the disk, before it answers."""

from __future__ import annotations

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

MISSING = "BullMQ: install Redis (on Debian and Ubuntu: `apt-get install redis-server`)"
PROGRAM = "redis-server"
STARTED_WITHIN = 10.0


def missing() -> str:
    """Return what to do first if there is no Redis, otherwise an empty text."""
    return "" if shutil.which(PROGRAM) else MISSING


@asynccontextmanager
async def running_redis(folder: Path) -> AsyncIterator[str]:
    """Run a server with an empty store in a new folder; yields its address."""
    folder.mkdir()  # noqa: ASYNC240  # nothing else runs yet
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    options = ("--port", str(port), "--bind", "127.0.0.1", "--dir", folder, "--save", "")
    durable = ("--appendonly", "yes", "--appendfsync", "always", "--maxmemory-policy", "noeviction")
    process = await asyncio.create_subprocess_exec(PROGRAM, *options, *durable, stdout=asyncio.subprocess.DEVNULL)
    try:
        async with asyncio.timeout(STARTED_WITHIN):
            while not await _answers(port):  # noqa: ASYNC110  # it waits for another process
                await asyncio.sleep(0.05)
        yield f"redis://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True
