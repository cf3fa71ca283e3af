"""Describe the machine that was measured: figures mean nothing without it."""

from __future__ import annotations

import os
import platform
import sqlite3
import time
from pathlib import Path
from statistics import median

SYNCS = 100


def described(folder: Path) -> str:
    """Describe the machine in one line, with the time that a folder's disk takes to store 16 KiB durably."""
    model = next(
        (line.partition(":")[2].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.machine(),
    )
    return (
        f"{os.cpu_count()} cores of {model}, Linux {platform.release()}, Python {platform.python_version()}, "
        f"SQLite {sqlite3.sqlite_version}, fdatasync {sync_milliseconds(folder):.2f} ms"
    )


def busy() -> str:
    """Return the load average of the last minute, which shows what else the machine was doing."""
    return f"{os.getloadavg()[0]:.1f}"


def sync_milliseconds(folder: Path) -> float:
    """Measure the milliseconds to store 16 KiB durably."""
    taken = []
    path = folder / "sync"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    try:
        for _ in range(SYNCS):
            os.write(descriptor, bytes(16384))
            began = time.perf_counter()
            os.fdatasync(descriptor)
            taken.append(time.perf_counter() - began)
    finally:
        os.close(descriptor)
        path.unlink()
    return 1000 * median(taken)


def _lines(path: str) -> list[str]:
    return Path(path).read_text(encoding="utf-8").splitlines()
