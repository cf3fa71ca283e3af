"""A few processes for work that untrusted input could make expensive. The server only waits for them."""

from __future__ import annotations

import asyncio
import os
import pickle
import time
from collections.abc import Callable, Sequence
from typing import BinaryIO, TypeVar, cast

import structlog

from bot.core.parts import PartKey
from bot.core.untrusted import wire
from bot.core.untrusted.limits import MAX_QUESTION_BYTES, MIB, QUESTION, AllLimits, Limits, OverLimit
from bot.core.untrusted.queue import Owner, Turns
from bot.core.untrusted.slot import Lost, Slot

FEWEST, MOST = 2, 4
"""Processes: one for each core of the machine, within these bounds."""

LARGE = 1 << 16
"""Bytes of an answer from which a thread reads it, because that takes more than a millisecond."""

STUCK_AFTER = 10.0
"""Seconds by which a job may be late against the longest limit before the pool is reported as stuck."""

STUCK = "no report has been read for {seconds:.0f} s although some are waiting; see the log"

Result = TypeVar("Result")

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Pool:
    """Runs functions in separate processes, which start with the first job and end with `close`, or the server.

    At their start, the processes import the modules of `preload`, which have the functions of jobs. The arguments of
    one job may have `most_bytes`.
    """

    def __init__(
        self,
        places: int | None = None,
        limits: AllLimits | None = None,
        clock: Callable[[], float] = time.monotonic,
        preload: Sequence[str] = (),
        most_bytes: int = MAX_QUESTION_BYTES,
    ) -> None:
        places = places or min(max(os.cpu_count() or FEWEST, FEWEST), MOST)
        self.limits = limits or AllLimits()
        self._most_bytes = most_bytes
        self._turns = Turns(places)
        self._idle = [Slot(preload) for _ in range(places)]
        self._slots = tuple(self._idle)
        self.clock = clock
        self._progress = clock()

    @property
    def pids(self) -> list[int]:
        """The processes that wait for work or work."""
        return [slot.pid for slot in self._slots if slot.pid is not None]

    @property
    def waiting(self) -> int:
        """How many jobs wait for a process."""
        return self._turns.waiting

    def check(self, owner: Owner) -> None:
        """Raise `TryAgain` if the queue has no place for this owner; callers check before they fetch files."""
        self._turns.check(owner)

    async def run(
        self,
        owner: Owner,
        limits: Limits,
        function: Callable[..., Result],
        *arguments: object,
        files: Sequence[BinaryIO] = (),
    ) -> Result:
        """Run a module's function with its arguments in a process of its own, and return the result.

        The function gets `files` first, as a list of open files without names, each at its beginning.

        Raises `OverLimit` with the limit in its text; the function's own exception if its class is ours and has no
        constructor of its own; `TryAgain` while too many jobs wait; `ChildFault` with a traceback for anything else.
        """
        if not self.waiting:
            self._progress = self.clock()
        await self._turns.take(owner)
        # There is an idle slot: there are as many turns as slots.
        slot = self._idle.pop()
        try:
            # Pickle only after the wait: otherwise each waiting job would hold its arguments twice.
            question = await asyncio.to_thread(pickle.dumps, (function, arguments), pickle.HIGHEST_PROTOCOL)
            if len(question) > self._most_bytes:
                raise OverLimit(QUESTION.format(act=limits.act, mib=self._most_bytes // MIB))
            for file in files:
                file.flush()
            answer = await self._ask(slot, limits, question, files)
        finally:
            self._idle.append(slot)
            self._progress = self.clock()
            self._turns.give_back(owner)
        if len(answer) > LARGE:
            return cast(Result, await asyncio.to_thread(wire.read_answer, answer))
        return cast(Result, wire.read_answer(answer))

    async def _ask(self, slot: Slot, limits: Limits, question: bytes, files: Sequence[BinaryIO]) -> bytearray:
        """Ask a process; ask once more if it was lost, because another one may have used up the machine's memory."""
        try:
            return await slot.ask(limits, question, files)
        except Lost as lost:
            log.warning("a process that read untrusted input was lost", act=limits.act, error=str(lost))
        try:
            return await slot.ask(limits, question, files)
        except Lost as lost:
            raise OverLimit(str(lost)) from None

    def problem(self) -> str | None:
        """Return the problem if jobs wait and none has ended for longer than any may take, else None."""
        silent = self.clock() - self._progress
        if self.waiting and silent > self.limits.longest + STUCK_AFTER:
            return STUCK.format(seconds=silent)
        return None

    def close(self) -> None:
        """End all processes, and what they do."""
        for slot in self._slots:
            slot.close()


POOL = PartKey[Pool]("pool")
