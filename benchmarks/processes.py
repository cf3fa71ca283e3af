"""What the kernel knows of a process."""

from __future__ import annotations

import os
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")
KIB = 1024


def cpu_seconds(pid: int) -> float:
    """Return the processor time that a process has spent, in all of its threads."""
    # The name before these fields may hold spaces, and is in brackets (proc_pid_stat(5)).
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_bytes(pid: int | str) -> int:
    """Return how much of a process (`"self"` for this one) is in memory."""
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) * KIB
    raise LookupError(f"the kernel does not show the memory of process {pid}")
