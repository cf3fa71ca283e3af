"""An event loop on which hours pass in seconds: whenever all tasks wait for a moment, the clock jumps to it.

The clock stands still while a thread works for the loop, and while bytes are on their way between the sockets of this
process. So the outcome does not depend on how fast the machine is.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple, Unpack

import pytest

from bot.engine.sqlite.writer import Writer

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")

THREAD_WAIT = 0.05
"""The longest that the loop sleeps while a thread works for it; the thread wakes it earlier."""


class SimulatedClock(selectors.DefaultSelector):
    """The clock of a loop. `wakes` counts its jumps: each is a moment for which a real process would wake up."""

    def __init__(self) -> None:
        super().__init__()
        self.began = time.time()
        self.passed = 0.0
        self.wakes = 0
        self.statements = 0
        self.working = 0
        """The calls to threads that have not returned."""

    def time(self) -> float:
        """Return the simulated time, in seconds since 1970."""
        return self.began + self.passed

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return events; without any, let the time pass for which the loop wants to wait."""
        events = super().select(0)
        if events or timeout == 0:
            return events
        if self.working or timeout is None:
            return super().select(THREAD_WAIT)
        self.passed += max(timeout, 0.0) + 1e-6
        self.wakes += 1
        return events


class SimulatedLoop(asyncio.SelectorEventLoop):
    """The loop."""

    def __init__(self) -> None:
        self.clock = SimulatedClock()
        super().__init__(self.clock)

    def time(self) -> float:
        """Return the seconds that have passed."""
        return self.clock.passed

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Arguments]], Result], *args: *Arguments
    ) -> asyncio.Future[Result]:
        """Count a call to a thread until it returns."""
        return self.counted(super().run_in_executor(executor, func, *args))

    def counted(self, future: asyncio.Future[Result]) -> asyncio.Future[Result]:
        """Let the clock stand still until a future is done."""
        self.clock.working += 1
        future.add_done_callback(self._returned)
        return future

    def _returned(self, _: asyncio.Future[Any]) -> None:
        self.clock.working -= 1


def simulate_time(monkeypatch: pytest.MonkeyPatch, loop: SimulatedLoop) -> None:
    """Let this process see the clock of a loop, and count the statements on SQLite."""
    submit = Writer._submit

    def counting(writer: Writer, operation: Any, argument: object) -> asyncio.Future[object]:
        loop.clock.statements += 1
        return loop.counted(submit(writer, operation, argument))

    monkeypatch.setattr(Writer, "_submit", counting)
    monkeypatch.setattr(time, "time", loop.clock.time)
    monkeypatch.setattr(time, "monotonic", loop.clock.time)
