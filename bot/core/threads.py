"""The threads that blocking work runs in: how many there are, and whether they still take work."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

MOST_THREADS = 16
"""Threads of asyncio's own pool, in which the results' store and long texts are read."""

PROBE_EVERY = 5.0
"""Seconds between two probes."""
PATIENCE = 15.0
"""Seconds after which a probe that has no thread yet is reported; an ordinary backlog is over sooner."""

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
    """Asks for a thread now and then; `clock` counts seconds from any moment on."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.clock = clock
        self._asked: float | None = None

    async def run(self) -> None:
        """Probe until cancelled."""
        while True:
            await self.probe()
            await asyncio.sleep(PROBE_EVERY)

    async def probe(self) -> None:
        """Wait for a thread that does nothing."""
        self._asked = self.clock()
        try:
            await asyncio.to_thread(_nothing)
        finally:
            self._asked = None

    def problem(self) -> str | None:
        """Return the problem if a thread has not answered for longer than ordinary load explains, else None."""
        waited = 0.0 if self._asked is None else self.clock() - self._asked
        return EXHAUSTED.format(threads=MOST_THREADS, seconds=waited) if waited > PATIENCE else None


def _nothing() -> None:
    """Do nothing: a probe only waits until a thread runs it."""
