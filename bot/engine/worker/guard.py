"""Protect jobs from each other: a limit on the time of each job, and an isolated run for a suspect.

When a process dies, all its running jobs end, and one of them may be the cause. A job that was running at two crashes
is a suspect: from then on it runs alone in its process, and only in a process that has lived for a while. A crash
during such a run is evidence against the suspect, because the process was stable before. If something outside kills
processes every few seconds, suspects wait, so these crashes count against no job.

A try without a note looks like a crash. So a process that survives an outage of the database remembers the tries whose
notes it could not store.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import TypeVar

from cachetools import LRUCache

from bot.engine.outage import is_outage
from bot.engine.sql.errors import DatabaseFailure

JOB_SECONDS = 900.0
"""Wall-clock seconds for one try of a job; the slowest wait for GitHub's write limits, or read a large bucket."""

PATIENCE = 10.0
"""Seconds for which a suspect waits for other jobs to end. Meanwhile no new ones start."""

MIN_AGE = 5.0
"""Seconds that a process must have lived before a suspect runs in it."""

AGE_FACTOR = 3.0
"""Each process that ended while a suspect ran alone multiplies the age that the next one must have."""

ALONE_SECONDS = 60.0
"""Seconds after which other jobs may start although a suspect still runs: a suspect may be slow and innocent."""

MAX_OUTLIVED = 1_000
"""The most jobs whose tries without a note a process remembers: many times as many as it runs at once."""

OVER_TIME = "this attempt took longer than {seconds:g} seconds, the maximum for one attempt of a job"

Result = TypeVar("Result")


class OverTime(Exception):
    """A try of a job took longer than it may."""

    def __init__(self, seconds: float) -> None:
        super().__init__(OVER_TIME.format(seconds=seconds))


class Busy(Exception):
    """A suspect could not run alone in time, because other jobs take long."""


class Stopping(Exception):
    """The process begins to stop, which ends the run of a suspect at once."""


class Guard:
    """Runs the jobs of one process. `seconds` limits each try; for the other three, see the constants."""

    def __init__(
        self,
        seconds: float = JOB_SECONDS,
        patience: float = PATIENCE,
        alone_seconds: float = ALONE_SECONDS,
        min_age: float = MIN_AGE,
    ) -> None:
        self._began = time.monotonic()
        self._min_age = min_age
        self._stopping = False
        self._suspect: asyncio.Timeout | None = None
        self._seconds = seconds
        self._patience = patience
        self._alone_seconds = alone_seconds
        self._waiting: deque[tuple[bool, asyncio.Future[None]]] = deque()
        self._running = 0
        self._is_exclusive = False
        self._outlived: LRUCache[int, int] = LRUCache(MAX_OUTLIVED)

    def outlived(self, job_id: int) -> int:
        """Return how many tries of a job have ended in this process without a note, since the last try with a note."""
        return self._outlived.get(job_id, 0)

    def outlive(self, job_id: int) -> None:
        """Count a try of a job that ended in this process without a note."""
        self._outlived[job_id] = self.outlived(job_id) + 1

    def forget(self, job_id: int) -> None:
        """Forget the tries of a job without a note: its new note covers all tries."""
        self._outlived.pop(job_id, None)

    @contextmanager
    def outliving(self, job_id: int) -> Iterator[None]:
        """Count the try that the block runs as outlived if an outage of the database ends it."""
        try:
            yield
        except DatabaseFailure as error:
            if is_outage(error):
                self.outlive(job_id)
            raise

    async def run(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Do work beside other work. Raises `OverTime`."""
        await self._enter(alone=False)
        try:
            return await self._limited(work)
        finally:
            self._leave()

    def too_young(self, alone: int) -> float:
        """Return the seconds until this process is old enough for a suspect; 0 if it is.

        `alone` is the number of processes in a row that ended while the suspect ran alone.
        """
        return max(0.0, self._min_age * AGE_FACTOR**alone - (time.monotonic() - self._began))

    async def run_alone(self, work: Callable[[], Awaitable[Result]]) -> Result:
        """Do work while this process does nothing else.

        Raises `Busy` if other work does not end in time, `Stopping` if the process stops, and `OverTime`.
        """
        async with self._exclusive():
            self._suspect = asyncio.timeout(self._seconds)
            try:
                if self._stopping:
                    raise Stopping
                return await self._limited(work, self._suspect)
            except OverTime:
                if self._stopping:
                    raise Stopping from None
                raise
            finally:
                self._suspect = None

    def stop(self) -> None:
        """End the run of a suspect, and begin no other: if the process is killed now, no suspect is to blame."""
        self._stopping = True
        if self._suspect is not None and not self._suspect.expired():
            self._suspect.reschedule(asyncio.get_running_loop().time())

    async def _limited(self, work: Callable[[], Awaitable[Result]], clock: asyncio.Timeout | None = None) -> Result:
        clock = clock or asyncio.timeout(self._seconds)
        try:
            async with clock:
                return await work()
        except TimeoutError:
            # Otherwise the work itself raised it, such as for a request that took too long.
            if clock.expired():
                raise OverTime(self._seconds) from None
            raise

    @asynccontextmanager
    async def _exclusive(self) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._patience):
                await self._enter(alone=True)
        except TimeoutError:
            raise Busy from None
        # The suspect may only be slow, so the other jobs must not wait for 15 minutes.
        timer = asyncio.get_running_loop().call_later(self._alone_seconds, self._end_exclusion)
        try:
            yield
        finally:
            timer.cancel()
            self._leave()

    async def _enter(self, *, alone: bool) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append((alone, turn))
        self._let_in()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._leave()  # the turn came at the same moment
            else:
                self._let_in()  # the jobs behind this one may begin
            raise

    def _let_in(self) -> None:
        """Let waiting jobs begin, in order. No job overtakes a suspect that waits to run alone."""
        while self._waiting and not self._is_exclusive:
            alone, turn = self._waiting[0]
            # A turn that is already done was cancelled while it waited.
            if not turn.done():
                if alone and self._running:
                    return
                self._running += 1
                self._is_exclusive = alone
                turn.set_result(None)
            self._waiting.popleft()

    def _leave(self) -> None:
        self._running -= 1
        if not self._running:
            self._is_exclusive = False
        self._let_in()

    def _end_exclusion(self) -> None:
        self._is_exclusive = False
        self._let_in()
