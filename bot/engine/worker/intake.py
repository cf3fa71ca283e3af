"""Throttle jobs while deliveries flood in.

GitHub waits ten seconds for the answer to a delivery, whereas a job can wait. Deliveries and jobs share one event loop,
and each turn of it runs a step of every job that is ready. So during a flood, at most `FEW` jobs run beside the
deliveries. But `AT_LEAST` more begin after every `PAUSE`, so jobs never starve. A job that waits for GitHub counts as
running: if GitHub takes 200 ms to answer, about 20 run at once.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Sized

MANY, WITHIN = 8, 0.1
"""`MANY` deliveries within `WITHIN` seconds are a flood. If a push causes as many, its jobs wait for a pause or two."""

FEW = 2
"""Jobs of one process that run beside a flood; up to this number, a job does not wait for deliveries."""

AT_LEAST = 2
"""Jobs that begin after each pause."""

PAUSE = 0.02
"""Seconds. With `AT_LEAST`, this allows 100 jobs a second under any flood."""


class Intake:
    """The recent deliveries of one process; `pause` and `within` are in seconds."""

    def __init__(self, few: int = FEW, pause: float = PAUSE, many: int = MANY, within: float = WITHIN) -> None:
        self._few = few
        self._pause = pause
        self._within = within
        self._arrivals: deque[float] = deque(maxlen=many)

    def count(self) -> None:
        """Count a delivery."""
        self._arrivals.append(time.monotonic())

    async def room(self, running: Sized, most: int) -> int:
        """Return how many jobs may begin, at least one, for a worker that runs the jobs `running` and at most `most`.

        Pauses first if enough jobs run beside a flood.
        """
        if self.is_flooded() and len(running) >= self._few:
            await asyncio.sleep(self._pause)
        if self.is_flooded():
            most = min(most, max(self._few, len(running) + AT_LEAST))
        return max(1, most - len(running))

    def is_flooded(self) -> bool:
        """Return whether many deliveries have just come in."""
        return len(self._arrivals) == self._arrivals.maxlen and time.monotonic() - self._arrivals[0] < self._within
