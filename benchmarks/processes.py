"""Read what the kernel reports about a process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import NamedTuple

TICKS = os.sysconf("SC_CLK_TCK")
NANOSECONDS = 10**9
KIB = 1024


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process, including all of its threads."""
    fields = _fields(pid)
    return (int(fields[11]) + int(fields[12])) / TICKS


def tree_seconds(pid: int) -> float:
    """Return the processor time of a process and of its descendants, to the nanosecond.

    `cpu_seconds` counts in hundredths of a second, and a single command takes less. Threads that have ended are not
    counted, and its children that have ended with `cpu_seconds`' precision.
    """
    total = 0.0
    for process in (pid, *descendants(pid)):
        # Of a thread, the first number is its time on a processor: https://docs.kernel.org/scheduler/sched-stats.html
        with suppress(FileNotFoundError, ProcessLookupError):
            for thread in Path(f"/proc/{process}/task").iterdir():
                total += int((thread / "schedstat").read_text(encoding="utf-8").split()[0]) / NANOSECONDS
    ended = _fields(pid)[13:15]
    return total + sum(map(int, ended)) / TICKS


def descendants(pid: int) -> list[int]:
    """Return the processes that a process has started, and those that these have started."""
    direct: list[int] = []
    with suppress(FileNotFoundError, ProcessLookupError):
        for children in Path(f"/proc/{pid}/task").glob("*/children"):
            direct += map(int, children.read_text(encoding="utf-8").split())
    return direct + [grandchild for child in direct for grandchild in descendants(child)]


def _fields(pid: int | str) -> Sequence[str]:
    """Return what follows the name of a process, which is in brackets and may contain spaces (proc_pid_stat(5))."""
    return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()


def resident_bytes(pid: int | str) -> int:
    """Return the resident memory of a process (`"self"` for this one)."""
    return _status(pid, "VmRSS")


def peak_bytes(pid: int | str) -> int:
    """Return the peak of a process's resident memory.

    Not `ru_maxrss`: until the process runs its own program, that also counts the memory of the process that forked it.
    """
    return _status(pid, "VmHWM")


def _status(pid: int | str, field: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        name, _, value = line.partition(":")
        if name == field:
            return int(value.split()[0]) * KIB
    raise LookupError(f"the kernel does not show the memory of process {pid}")


class ServerProcess(NamedTuple):
    """A running server: the port of 127.0.0.1 at which it listens, and the number of its process."""

    port: int
    pid: int


@asynccontextmanager
async def serving(*command: str | Path, env: Mapping[str, str] | None = None) -> AsyncIterator[int]:
    """Run a server that prints its port and ends when its standard input is closed; yields the port."""
    async with running(*command, env=env) as server:
        yield server.port


@asynccontextmanager
async def running(*command: str | Path, env: Mapping[str, str] | None = None) -> AsyncIterator[ServerProcess]:
    """Run a server like `serving`; yields its port and its process."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env=env)
    try:
        assert process.stdout is not None
        yield ServerProcess(int(await process.stdout.readline()), process.pid)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
