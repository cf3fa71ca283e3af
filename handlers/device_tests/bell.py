"""Wake claims that wait for a job of a lab, so that they don't poll the database.

A change by this process wakes one claim of each kind that may get a job now. To notice changes by other replicas, the
bell runs one statement for each lab every `PULSE_SECONDS` while claims wait.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import structlog

from bot.engine.sql.errors import DatabaseFailure

PULSE_SECONDS = 2.0

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ClaimKind:
    """What decides which jobs a claim may get. If one claim of a kind finds no job, neither does another."""

    lab: str
    targets: frozenset[str]
    repositories: frozenset[str]
    is_able: bool = False
    """Whether it may get jobs that are not a pull request's."""


class JobBell:
    """The bell of one process."""

    def __init__(self) -> None:
        self._waiting: dict[str, dict[ClaimKind, list[asyncio.Event]]] = defaultdict(lambda: defaultdict(list))
        self._someone_waits = asyncio.Event()

    @contextmanager
    def listen(self, kind: ClaimKind) -> Iterator[asyncio.Event]:
        """Yield an event that is set whenever there may be a job for a claim.

        If the block ends before the claim has cleared the event, another claim of its kind is woken.
        """
        rung, kinds = asyncio.Event(), self._waiting[kind.lab]
        kinds[kind].append(rung)
        self._someone_waits.set()
        try:
            yield rung
        finally:
            kinds[kind].remove(rung)
            if rung.is_set():
                self.ring_next(kind)
            if not kinds[kind]:
                del kinds[kind]
            if not kinds:
                self._waiting.pop(kind.lab, None)
            if not self._waiting:
                self._someone_waits.clear()

    def ring(self, lab: str, target: str) -> None:
        """Wake one claim of each kind that waits for a job of a target."""
        for kind in self._waiting.get(lab, ()):
            if target in kind.targets:
                self.ring_next(kind)

    def ring_next(self, kind: ClaimKind) -> None:
        """Wake the claim of a kind that has waited longest, of those that are not awake."""
        for rung in self._waiting[kind.lab][kind]:
            if not rung.is_set():
                rung.set()
                return

    def waiting(self, lab: str | None = None) -> int:
        """Return the number of waiting claims, of one lab or of all."""
        labs = [self._waiting.get(lab, {})] if lab else self._waiting.values()
        return sum(len(claims) for kinds in labs for claims in kinds.values())

    async def watch(
        self, queued_targets: Callable[[str], Awaitable[Iterable[str]]], pause: float = PULSE_SECONDS
    ) -> None:
        """Ring for jobs of other replicas, until cancelled; `queued_targets` returns the targets of a lab with jobs."""
        while True:
            await self._someone_waits.wait()
            await asyncio.sleep(pause)
            try:
                for lab in list(self._waiting):
                    for target in await queued_targets(lab):
                        self.ring(lab, target)
            # The task must not end: claims would then see no jobs of other replicas until the next start.
            except DatabaseFailure as error:
                log.info("cannot read the queued jobs of other replicas", reason=type(error).__name__)
