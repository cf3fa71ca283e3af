"""Read what the kernel reports about a process."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
KIB = 1024


def cpu_seconds(pid: int) -> float:
    """Return the processor time of a process, including all of its threads."""
    # The name before these fields is in brackets and may contain spaces (proc_pid_stat(5)).
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


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


@asynccontextmanager
async def serving(*command: str | Path, env: Mapping[str, str] | None = None) -> AsyncIterator[int]:
    """Run a server that prints its port and ends when its standard input is closed; yields the port."""
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, env=env)
    try:
        assert process.stdout is not None
        yield int(await process.stdout.readline())
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
