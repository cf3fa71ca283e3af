"""Time that passes only while everybody sleeps."""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Awaitable, Iterable
from itertools import count
from typing import Any

from bot.github.limits.governor import Timing


class JumpingTime:
    """A clock for one task: a sleep ends at once and moves the clock; `slept` has the length of each.

    `wall` is the wall clock's time at the beginning, None for that of the machine.
    """

    def __init__(self, wall: float | None = None) -> None:
        self.now = 1000.0
        self._wall = None if wall is None else wall - self.now
        self.slept: list[float] = []

    async def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        await asyncio.sleep(0)

    def wall(self) -> float:
        return time.time() if self._wall is None else self._wall + self.now

    def timing(self) -> Timing:
        return Timing(clock=lambda: self.now, wall=self.wall, sleep=self.sleep, jitter=lambda: 0.0)


class SharedTime:
    """A clock for many tasks: it moves to the end of the next sleep as soon as every task sleeps."""

    ROUNDS = 12  # turns of the event loop after which a task without I/O has reached its next sleep

    def __init__(self) -> None:
        self.now = 0.0
        self._sleepers: list[tuple[float, int, asyncio.Future[None]]] = []
        self._order = count()

    async def sleep(self, seconds: float) -> None:
        waking: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        heapq.heappush(self._sleepers, (self.now + seconds, next(self._order), waking))
        await waking

    def timing(self) -> Timing:
        return Timing(clock=lambda: self.now, sleep=self.sleep, jitter=lambda: 0.0)

    async def run(self, work: Iterable[Awaitable[Any]]) -> None:
        tasks = [asyncio.ensure_future(awaitable) for awaitable in work]
        while True:
            for _ in range(self.ROUNDS):
                await asyncio.sleep(0)
            if not self._sleepers:
                break
            self.now, _, waking = heapq.heappop(self._sleepers)
            waking.set_result(None)
        await asyncio.gather(*tasks)
