"""The real bot as a process of its own, for the demo and for tests that kill it."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sandbox.processes import Launch, Program, inherited, launch

READY = "serving"  # the log line that has the port
STARTS_WITHIN = STOPS_WITHIN = 600.0
"""Seconds: far more than either takes on a busy machine."""


def free_port() -> int:
    """Return a port on which nothing listens, for an address that settings name before the bot starts."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class BotProcess:
    """A process of `nightjar serve` or another command, which can be killed and restarted on the same port and data.

    `environment` has the bot's variables; from our own environment it gets only what any program needs. `options` are
    further options of the command. `output` is everything that it printed, and `logs` are the JSON lines in that.
    `module` runs in place of `bot` if a test cannot wait as long as the bot does, and `launch` starts the process.
    `port` 0 is any free port. `report` gets each printed line.
    """

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        config: Path,
        command: str = "serve",
        options: Sequence[str] = (),
        module: str = "bot",
        launch: Launch = launch,
        port: int = 0,
        report: Callable[[str], object] | None = None,
    ) -> None:
        self.environment = dict(environment)
        self.config = config
        self.command = command
        self.options = tuple(options)
        self.module = module
        self.launch = launch
        self.port = port
        self.report = report
        self.logs: list[dict[str, Any]] = []
        self.output: list[str] = []
        self._process: Program | None = None
        self._reader: asyncio.Task[None] | None = None
        self._ready = asyncio.Event()

    @property
    def url(self) -> str:
        """Return the address at which it listens, without a slash at the end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        """Return the number of the running process."""
        assert self._process is not None, "the bot was not started"
        return self._process.pid

    async def start(self) -> BotProcess:
        """Start it and wait until it serves. Raises AssertionError with its output if it does not."""
        process = await self.spawn()
        waits = {asyncio.create_task(self._ready.wait()), asyncio.create_task(process.wait())}
        _, pending = await asyncio.wait(waits, timeout=STARTS_WITHIN, return_when=asyncio.FIRST_COMPLETED)
        for task in pending:
            task.cancel()
        if not self._ready.is_set():
            raise AssertionError("the bot did not start:\n" + "\n".join(self.output[-20:]))
        return self

    async def spawn(self) -> Program:
        """Start it, and read what it logs."""
        self._ready = asyncio.Event()
        self._process = await self.launch(self.module, *self._arguments(), env=self._environment(), merged=True)
        self._reader = asyncio.create_task(self._read(self._process))
        return self._process

    async def run(self, *arguments: str) -> tuple[int, str, str]:
        """Run another `nightjar` command beside it; returns the exit code, standard output and standard error."""
        process = await self.launch("bot", *arguments, env=self._environment())
        stdout, err = await process.communicate()
        assert process.returncode is not None
        return process.returncode, stdout.decode(), err.decode()

    async def stop(self) -> int:
        """Ask it to stop and wait; returns its exit code."""
        return await self._end(signal.SIGTERM)

    async def ended(self) -> int:
        """Wait until it ends after a signal; return its exit code."""
        return await self._end(None)

    async def kill(self) -> None:
        """Kill it with SIGKILL."""
        await self._end(signal.SIGKILL)

    def send(self, number: signal.Signals) -> None:
        """Send it a signal, such as SIGSTOP."""
        os.kill(self.pid, number)

    async def _end(self, number: signal.Signals | None) -> int:
        process = self._process
        if process is None:
            return 0
        if process.returncode is None and number is not None:
            process.send_signal(number)
        async with asyncio.timeout(STOPS_WITHIN):
            code = await process.wait()
        if self._reader is not None:
            await self._reader
        # Only after it has ended: while it stops, a test may send another signal.
        self._process = None
        return code

    def _arguments(self) -> Sequence[str]:
        place = () if self.command == "worker" else ("--host", "127.0.0.1", "--port", str(self.port))
        return (self.command, "--config", str(self.config), *place, *self.options)

    def _environment(self) -> dict[str, str]:
        return {**inherited(), **self.environment}

    async def _read(self, process: Program) -> None:
        assert process.stdout is not None
        async for raw in process.stdout:
            line = raw.decode(errors="replace").rstrip("\n")
            self.output.append(line)
            if self.report is not None:
                self.report(line)
            try:
                entry = json.loads(line)
            except ValueError:
                continue
            if isinstance(entry, dict):
                self.logs.append(entry)
                if entry.get("event") == READY:
                    self.port = int(entry["port"])
                    self._ready.set()
