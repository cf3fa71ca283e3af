"""The agents of the demo's lab: processes of `nightjar-lab agent`, with devices that replay a report."""

from __future__ import annotations

import asyncio
import shlex
import signal
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from sandbox.demo.lab import ROOT
from sandbox.demo.two_weeks import LAB
from sandbox.processes import Program, inherited, launch

TESTS = 'cp {report} "$NIGHTJAR_RESULTS/"; cp {log} "$NIGHTJAR_FILES/"; exit 1'
"""The command of a simulated device: it copies a report, and a log."""
HANGS = "sleep 600"
LEAST_FREE = "1"


def device(report: Path, log: Path) -> str:
    """Return the command of a device whose tests end as in a report, and print a log."""
    return TESTS.format(report=shlex.quote(str(report)), log=shlex.quote(str(log)))


class DemoAgent:
    """An agent that can be killed and restarted. `report` gets each line of its log."""

    def __init__(
        self, name: str, targets: Sequence[str], script: str, folder: Path, mirror: Path, report: Callable[[str], None]
    ) -> None:
        self.name = name
        self.said: list[str] = []
        options = [option for target in targets for option in ("--target", target)]
        options += ["--folder", str(folder / name), "--clone-url", f"file://{mirror}", "--least-free", LEAST_FREE]
        self._arguments = ["agent", *options, "--", "sh", "-c", script]
        self._report = report
        self._process: Program | None = None
        self._reader: asyncio.Task[None] | None = None

    async def start(self, url: str, token: str) -> None:
        """Start it as a machine of the lab."""
        environment: Mapping[str, str] = {
            **inherited(),
            "PYTHONPATH": str(ROOT / "lab"),
            "NIGHTJAR_URL": url,
            "NIGHTJAR_LAB": LAB,
            "NIGHTJAR_LAB_TOKEN": token,
        }
        self._process = await launch("nightjar_lab", *self._arguments, env=environment)
        self._reader = asyncio.create_task(self._read(self._process))

    async def end(self, number: signal.Signals = signal.SIGKILL) -> None:
        """Send it a signal, and wait until it has ended."""
        process, self._process = self._process, None
        if process is None:
            return
        with suppress(ProcessLookupError):
            process.send_signal(number)
        await process.wait()
        if self._reader is not None:
            await self._reader

    def claimed(self, attempt: int) -> bool:
        """Whether it has claimed a job in this attempt."""
        return any(f"attempt {attempt}" in line for line in self.said)

    async def _read(self, process: Program) -> None:
        assert process.stderr is not None
        async for raw in process.stderr:
            # The text comes after date, time and level.
            line = raw.decode(errors="replace").rstrip().split(" ", 3)[-1]
            self.said.append(line)
            self._report(f"{self.name}: {line}")
