"""A process that runs an engine with a toy processor: `python -m tests.engine.replica URL WORLD PACE`.

It stores the deliveries that it reads as JSON lines, and answers each with its GUID once it is stored.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from bot.core import logs
from bot.engine.service import Engine, Pace, StorageError
from sandbox.processes import end_with_parent
from tests.engine.toy import Toy, World
from tests.waiting import until

READY = "ready"


class Replica:
    """Such a process, from outside."""

    def __init__(self, process: Process) -> None:
        self._process = process
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
        """Hand a delivery over; it is `acknowledged` when it is durable."""
        assert self._process.stdin is not None
        line = json.dumps({"guid": guid, "event": "issue_comment", "lock": lock, "body": body})
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(line.encode() + b"\n")
            await self._process.stdin.drain()

    def kill(self) -> None:
        self._process.kill()

    def freeze(self) -> None:
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self._process.send_signal(signal.SIGCONT)

    async def ended(self) -> int:
        """Wait for the end of the process; return its exit status, negative for a signal."""
        status = await self._process.wait()
        await self._reader
        return status

    async def stop(self) -> int:
        """Stop it gracefully."""
        if self._process.returncode is None:
            self._process.terminate()
        return await self.ended()


@contextlib.asynccontextmanager
async def replica(url: str, world: Path, pace: Pace, *, doomed: bool = False) -> AsyncIterator[Replica]:
    """Start a replica, and return when it works; it is killed in the end if it lives. A doomed one may die at once."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.engine.replica",
        url,
        str(world),
        json.dumps(asdict(pace)),
        stdin=PIPE,
        stdout=PIPE,
        cwd=Path(__file__).parents[2],
        limit=2**20,
        preexec_fn=end_with_parent,
    )
    it: Replica | None = None
    try:
        assert process.stdout is not None
        line = (await process.stdout.readline()).decode().strip()
        assert line == READY or doomed, f"the replica did not start: {line!r}"
        it = Replica(process)
        yield it
    finally:
        # Also where the test was over, or the replica not ready, before it had started.
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
        await (it.ended() if it else process.wait())


async def main(url: str, place: Path, pace: dict[str, Any]) -> None:
    with contextlib.closing(World(place)) as world:
        await _serve(Engine(url, Toy(world), pace=Pace(**pace)))


async def _serve(engine: Engine) -> None:
    loop = asyncio.get_running_loop()
    async with engine:
        await engine.recover()
        running = asyncio.create_task(engine.run())
        loop.add_signal_handler(signal.SIGTERM, lambda: loop.create_task(engine.stop()))
        await until(lambda: engine.ready() is None)
        say(READY)
        reader = asyncio.StreamReader(limit=2**20)
        await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
        accepting: set[asyncio.Task[None]] = set()
        intake = asyncio.create_task(_accept_lines(engine, reader, accepting))
        await running
        intake.cancel()


async def _accept_lines(engine: Engine, reader: asyncio.StreamReader, accepting: set[asyncio.Task[None]]) -> None:
    async for line in reader:
        task = asyncio.create_task(_accept(engine, json.loads(line)))
        accepting.add(task)
        task.add_done_callback(accepting.discard)


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
