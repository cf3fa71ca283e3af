"""Wake claims that wait for a job of a lab, so that they don't poll the database.

Changes by this process wake them at once. For changes by other replicas, one statement runs every `PULSE_SECONDS`, for
any number of waiting claims, and none if no claim waits.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager

import structlog
from procrastinate.exceptions import ConnectorException

PULSE_SECONDS = 2.0

LabVersions = Mapping[str, object]
"""Values that change whenever a job of a lab is queued, or a device becomes free, by the lab's name."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class JobBell:
    """The bell of one process."""

    def __init__(self) -> None:
        self._waiting: dict[str, set[asyncio.Event]] = defaultdict(set)
        self._seen: LabVersions = {}

    @contextmanager
    def listen(self, lab: str) -> Iterator[asyncio.Event]:
        """Yield an event that is set whenever there may be a job of the lab."""
        rung = asyncio.Event()
        self._waiting[lab].add(rung)
        try:
            yield rung
        finally:
            self._waiting[lab].discard(rung)
            if not self._waiting[lab]:
                del self._waiting[lab]

    def ring(self, lab: str) -> None:
        """Wake all who wait for a job of a lab."""
        for rung in self._waiting.get(lab, ()):
            rung.set()

    def waiting(self, lab: str | None = None) -> int:
        """Return the number of waiting claims, of one lab or of all."""
        return len(self._waiting.get(lab, ())) if lab else sum(map(len, self._waiting.values()))

    async def watch(self, versions: Callable[[], Awaitable[LabVersions]], pause: float = PULSE_SECONDS) -> None:
        """Ring for changes of other replicas, until cancelled."""
        while True:
            await asyncio.sleep(pause)
            if not self._waiting:
                continue
            try:
                now = await versions()
            # The task must not end: claims would then see no jobs of other replicas until the next start.
            except ConnectorException as error:
                log.info("jobs of other replicas are not seen", reason=type(error).__name__)
                continue
            for lab in list(self._waiting):
                # This also rings for what this process changed itself. That costs each waiting claim one more try.
                if now.get(lab) != self._seen.get(lab):
                    self.ring(lab)
            self._seen = now
