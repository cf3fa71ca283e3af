"""A process that runs an engine with a toy processor: `python -m tests.engine.replica URL WORLD PACE`.

It prints the port on which it accepts deliveries as JSON lines, and the GUID of each delivery once it is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bot.core import logs
from bot.engine.service import Engine, StorageError, WorkerPace
from sandbox.processes import Program
from tests.engine.toy import Toy, World
from tests.fork_server import launch
from tests.waiting import until


class Replica:
    """Controls such a process."""

    def __init__(self, process: Program, deliveries: asyncio.StreamWriter | None) -> None:
        self._process = process
        self._deliveries = deliveries
        self.acknowledged: set[str] = set()
        self._reader = asyncio.create_task(self._read())

    @property
    def pid(self) -> int:
        return self._process.pid

    async def _read(self) -> None:
        assert self._process.stdout is not None
        async for line in self._process.stdout:
            self.acknowledged.add(line.decode().strip())

    async def send(self, guid: str, lock: str, body: str) -> None:
        """Send a delivery; it is `acknowledged` when it is durable."""
        assert self._deliveries is not None
        line = json.dumps({"guid": guid, "event": "issue_comment", "lock": lock, "body": body})
        with contextlib.suppress(ConnectionError):
            self._deliveries.write(line.encode() + b"\n")
            await self._deliveries.drain()

    def kill(self) -> None:
        self._process.kill()

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    async def ended(self) -> int:
        """Wait for the end of the process; return its exit status, which is negative for a signal."""
        status = await self._process.wait()
        await self._reader
        if self._deliveries is not None:
            self._deliveries.close()
            with contextlib.suppress(ConnectionError):
                await self._deliveries.wait_closed()
        return status

    async def stop(self) -> int:
        """Stop it gracefully."""
        if self._process.returncode is None:
            self._process.terminate()
        return await self.ended()


@contextlib.asynccontextmanager
async def replica(url: str, world: Path, pace: WorkerPace, *, doomed: bool = False) -> AsyncIterator[Replica]:
    """Start a replica and wait until it works; at the end, kill it if it is still running.

    A `doomed` one may die at once.
    """
    arguments = (url, str(world), json.dumps(asdict(pace)))
    process = await launch("tests.engine.replica", *arguments, env=os.environ, cwd=Path(__file__).parents[2])
    started: Replica | None = None
    try:
        assert process.stdout is not None
        port = (await process.stdout.readline()).decode().strip()
        assert port or doomed, "the replica did not start"
        started = Replica(process, (await asyncio.open_connection("127.0.0.1", int(port)))[1] if port else None)
        yield started
    finally:
        # Even if the test ended, or the replica was not ready, before it had started.
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await (started.ended() if started else process.wait())


async def main(url: str, place: Path, pace: dict[str, Any]) -> None:
    with contextlib.closing(World(place)) as world:
        await _serve(Engine(url, Toy(world), pace=WorkerPace(**pace)))


async def _serve(engine: Engine) -> None:
    loop = asyncio.get_running_loop()
    async with engine:
        await engine.recover()
        running = asyncio.create_task(engine.run())
        loop.add_signal_handler(signal.SIGTERM, lambda: loop.create_task(engine.stop()))
        await until(lambda: engine.ready() is None)
        accepting: set[asyncio.Task[None]] = set()

        async def accept_lines(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
            async for line in reader:
                task = asyncio.create_task(_accept(engine, json.loads(line)))
                accepting.add(task)
                task.add_done_callback(accepting.discard)

        server = await asyncio.start_server(accept_lines, "127.0.0.1", 0, limit=2**20)
        say(str(server.sockets[0].getsockname()[1]))
        await running
        server.close()


async def _accept(engine: Engine, delivery: dict[str, str]) -> None:
    with contextlib.suppress(StorageError):
        await engine.accept(delivery["guid"], delivery["event"], delivery["body"], delivery["lock"])
        say(delivery["guid"])


def say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    logs.configure(pretty=False)
    asyncio.run(main(sys.argv[1], Path(sys.argv[2]), json.loads(sys.argv[3])))
