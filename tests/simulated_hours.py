"""An event loop on which hours pass in seconds: whenever all tasks wait for a moment, the clock jumps to it.

The clock stands still while a thread works for the loop, and while bytes are on their way between the sockets of this
process. So the outcome does not depend on how fast the machine is.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, ParamSpec, TypeVar, TypeVarTuple, Unpack

import pytest

from bot.aws.client import in_thread
from bot.engine.postgres.connector import PostgresConnector, _Pool
from bot.engine.service import Engine
from bot.engine.sqlite.writer import Writer
from bot.github.limits.governor import Timing

Result = TypeVar("Result")
Arguments = TypeVarTuple("Arguments")
Parameters = ParamSpec("Parameters")

THREAD_WAIT = 0.05
"""The longest that the loop sleeps while a thread works for it; the thread wakes it earlier."""


class SimulatedClock(selectors.DefaultSelector):
    """The clock of a loop.

    `wakes` counts its jumps, for each of which a real process would wake up, and the wake-ups by threads and servers.
    """

    def __init__(self) -> None:
        super().__init__()
        self.began = time.time()
        self.passed = 0.0
        self.wakes = 0
        self.working = 0
        """The calls to threads and servers that have not returned."""

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
        """Let the clock stand still until a thread is done. It wakes up, and then the loop."""
        self.clock.working += 1
        self.clock.wakes += 2
        future.add_done_callback(self._returned)
        return future

    def awaited(
        self, function: Callable[Parameters, Awaitable[Result]], wakes: int
    ) -> Callable[Parameters, Awaitable[Result]]:
        """Return the function with a clock that stands still while it runs; `wakes` is what a call costs."""

        async def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
            self.clock.working += 1
            self.clock.wakes += wakes
            try:
                return await function(*args, **kwargs)
            finally:
                self.clock.working -= 1

        return call

    def _returned(self, _: asyncio.Future[Any]) -> None:
        self.clock.working -= 1


def in_simulated_time(work: Callable[[SimulatedLoop], Coroutine[Any, Any, Result]]) -> Result:
    """Run a coroutine on a loop of its own, by whose clock this process lives meanwhile; return what it returns."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner, pytest.MonkeyPatch.context() as patch:
        loop = runner.get_loop()
        assert isinstance(loop, SimulatedLoop)
        _simulate_time(patch, loop)
        return runner.run(work(loop))


def _simulate_time(monkeypatch: pytest.MonkeyPatch, loop: SimulatedLoop) -> None:
    """Let this process see the clock of a loop, which waits for databases and for S3."""
    submit = Writer._submit

    def counting(writer: Writer, operation: Any, argument: object) -> asyncio.Future[object]:
        return loop.counted(submit(writer, operation, argument))

    monkeypatch.setattr(Writer, "_submit", counting)
    # Python binds a default when it defines the function. SQLite's now() is the clock of the engine, and GitHub's
    # limits end by the governor's.
    defaults = Engine.__init__.__kwdefaults__ or {}
    monkeypatch.setitem(defaults, "clock", loop.clock.time)
    monkeypatch.setattr(
        Timing.__init__, "__defaults__", (loop.clock.time, loop.clock.time, *(Timing.__init__.__defaults__ or ())[2:])
    )
    for name in ("execute_query_async", "execute_query_all_async", "execute_query_one_async", "transact"):
        monkeypatch.setattr(PostgresConnector, name, loop.awaited(getattr(PostgresConnector, name), 1))
    monkeypatch.setattr(_Pool, "open", loop.awaited(_Pool.open, 0))
    monkeypatch.setattr(_Pool, "getconn", loop.awaited(_Pool.getconn, 0))
    monkeypatch.setattr(_Pool, "_connect", loop.awaited(_Pool._connect, 0))
    monkeypatch.setattr("bot.aws.bucket.in_thread", loop.awaited(in_thread, 2))
    monkeypatch.setattr(time, "time", loop.clock.time)
    monkeypatch.setattr(time, "monotonic", loop.clock.time)
