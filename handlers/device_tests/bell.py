"""Wake claims that wait for a job of a lab, so that they don't poll the database.

A change by this process wakes them at once. To notice changes by other replicas, the bell runs one statement every
`PULSE_SECONDS` while any number of claims wait.
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
"""By the name of the lab, a value that changes whenever a job is queued or a device becomes free."""

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
        """Wake all claims that wait for a job of a lab."""
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
                current = await versions()
            # The task must not end: claims would then see no jobs of other replicas until the next start.
            except ConnectorException as error:
                log.info("cannot read other replicas' job versions", reason=type(error).__name__)
                continue
            for lab in list(self._waiting):
                # This also rings for changes by this process, which costs each waiting claim one more try.
                if current.get(lab) != self._seen.get(lab):
                    self.ring(lab)
            self._seen = current
