"""The threads for blocking work: how many there are, and whether one is free."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

MOST_THREADS = 16
"""Threads of asyncio's own pool, which read the store of results and long texts."""

PROBE_EVERY = 15.0
"""Seconds between two probes."""
PATIENCE = 15.0
"""Seconds after which a probe without a thread is a problem; an ordinary backlog ends sooner."""

EXHAUSTED = (
    "all {threads} threads for blocking work have been busy for {seconds:.0f} s, so results and long texts wait; check "
    "the database and the log, and restart the process if this lasts"
)


def bound_threads() -> ThreadPoolExecutor:
    """Give the running event loop a pool of threads whose size does not depend on the machine; return it."""
    pool = ThreadPoolExecutor(MOST_THREADS, thread_name_prefix="blocking")
    asyncio.get_running_loop().set_default_executor(pool)
    return pool


class ThreadProbe:
    """Requests a thread every few seconds; `clock` is in seconds from any starting point."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._requested_at: float | None = None

    async def run(self) -> None:
        """Probe until cancelled."""
        while True:
            await self.probe()
            await asyncio.sleep(PROBE_EVERY)

    async def probe(self) -> None:
        """Wait for a thread that does nothing."""
        self._requested_at = self.clock()
        try:
            await asyncio.to_thread(_nothing)
        finally:
            self._requested_at = None

    def problem(self) -> str | None:
        """Return the problem if a thread has not answered for longer than ordinary load explains, else None."""
        waited = 0.0 if self._requested_at is None else self.clock() - self._requested_at
        return EXHAUSTED.format(threads=MOST_THREADS, seconds=waited) if waited > PATIENCE else None


def _nothing() -> None:
    """Do nothing: a probe only waits until a thread runs it."""
