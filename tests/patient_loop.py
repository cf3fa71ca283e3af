"""An event loop on whose clock a busy machine costs no time, for all tests that await something.

The time limits of the product (asyncio's, aiohttp's, the timers) count by the clock of their event loop. The product,
the sandbox and the test share one. While they compute, or another process has the core, the clock stands still but for
`MOST` seconds at a time; while all of them wait for something, it goes on. So a limit ends only what really waits.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable

MOST = 0.05
"""Seconds that count of each turn of the loop, however long it took, and of each wake-up that came too late."""


class PatientSelector(selectors.DefaultSelector):
    """Measures the time that counts; `clock` is in seconds from any starting point."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__()
        self._clock = clock
        self._turn_began = self._counted = clock()

    def time(self) -> float:
        """Return the time that counts: until the current turn of the loop began, and at most `MOST` of this turn."""
        return self._counted + min(self._clock() - self._turn_began, MOST)

    def advance(self, seconds: float) -> None:
        """Count time that nobody waited for."""
        self._counted += seconds

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for events as long as the loop wants to."""
        counted, began = self.time(), self._clock()
        events = super().select(timeout)
        self._turn_began = self._clock()
        waited = self._turn_began - began
        self._counted = counted + (waited if timeout is None else min(waited, max(timeout, 0.0) + MOST))
        return events


class PatientLoop(asyncio.SelectorEventLoop):
    """The loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._patient = PatientSelector(clock)
        super().__init__(self._patient)

    def time(self) -> float:
        """Return the time that counts, in seconds from any starting point."""
        return self._patient.time()

    def advance(self, seconds: float) -> None:
        """Let time pass at once: a limit that ends within it ends now, and what waited that long goes on."""
        self._patient.advance(seconds)


def advance(seconds: float) -> None:
    """Let time pass at once on the clock of the running test's loop, which is a `PatientLoop`."""
    loop = asyncio.get_running_loop()
    assert isinstance(loop, PatientLoop)
    loop.advance(seconds)
