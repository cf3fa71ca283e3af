"""While many deliveries wait to be stored, they go before jobs that could begin.

GitHub gives up after ten seconds, whereas a job may begin a moment later. So a worker fetches no jobs while more than
`FEW` deliveries are being stored. It waits for at most `LONGEST_PAUSE`, so jobs begin however many deliveries come in.
If it waited for any delivery, each step of a command would be delayed by deliveries that are answered in time anyway.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

FEW = 16
"""Deliveries that one process may be storing while its worker fetches jobs."""

LONGEST_PAUSE = 0.02
"""Seconds. A worker then fetches as many jobs as it has free slots: with 50 slots, that allows 2,500 jobs a second."""


class Intake:
    """The deliveries that one process is storing right now; `longest_pause` is in seconds."""

    def __init__(self, few: int = FEW, longest_pause: float = LONGEST_PAUSE) -> None:
        self._few = few
        self._longest_pause = longest_pause
        self._count = 0
        self._calm = asyncio.Event()
        self._calm.set()

    @contextmanager
    def accepting(self) -> Iterator[None]:
        """Count a delivery while the caller stores it."""
        self._changed(1)
        try:
            yield
        finally:
            self._changed(-1)

    async def give_way(self) -> None:
        """Wait until few deliveries are being stored, but not for long."""
        if not self._calm.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._longest_pause):
                    await self._calm.wait()

    def _changed(self, by: int) -> None:
        self._count += by
        if self._count > self._few:
            self._calm.clear()
        else:
            self._calm.set()
