"""Batch concurrent calls into one round trip and commit.

While one batch is being sent, new calls collect in the next, so batches grow with the load. `bot.engine.sqlite.writer`
does the same for SQLite.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

Argument = TypeVar("Argument")
Result = TypeVar("Result")

MOST = 200
"""The most calls of a batch, which bounds how long its first call waits."""


@dataclass(slots=True, eq=False)
class _Call(Generic[Argument, Result]):
    argument: Argument
    future: asyncio.Future[Result]

    def settle(self, result: Result | None, error: BaseException | None) -> None:
        """Answer the caller, unless it was cancelled meanwhile."""
        if self.future.done():
            return
        if error is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(result)  # type: ignore[arg-type]  # without an error there is a result


@dataclass(slots=True, eq=False)
class Batcher(Generic[Argument, Result]):
    """Passes the arguments of all waiting calls to `run_batch` at once, and returns to each caller its result.

    If a batch fails, each of its arguments is tried alone, unless the error is `general`, so that each would meet it. A
    batch that takes more than `patience` seconds is given up, and its callers get TimeoutError. A call that is
    cancelled before its batch begins is dropped; later, it is carried out nevertheless.
    """

    run_batch: Callable[[Sequence[Argument]], Awaitable[Sequence[Result]]]
    general: Callable[[BaseException], bool]
    patience: float
    _waiting: list[_Call[Argument, Result]] = field(default_factory=list)
    _running: asyncio.Task[None] | None = None
    _given_up: set[asyncio.Task[None]] = field(default_factory=set)

    async def call(self, argument: Argument) -> Result:
        """Return the result of `run_batch` for an argument. Raises its error, or TimeoutError."""
        call = _Call[Argument, Result](argument, asyncio.get_running_loop().create_future())
        self._waiting.append(call)
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())
        return await call.future

    async def _run(self) -> None:
        running, loop = self._running, asyncio.get_running_loop()
        while self._waiting and self._running is running:
            calls, self._waiting = self._waiting[:MOST], self._waiting[MOST:]
            timer = loop.call_later(self.patience, self._give_up, calls)
            try:
                # Finished calls were cancelled.
                await self._answer([call for call in calls if not call.future.done()])
            finally:
                timer.cancel()

    def _give_up(self, calls: Sequence[_Call[Argument, Result]]) -> None:
        """Answer the callers of a batch that hangs, and begin the next one.

        The batch is not awaited: if the server hangs, its cancellation takes seconds more.
        """
        assert self._running is not None
        given_up = self._running
        given_up.cancel()
        self._given_up.add(given_up)
        given_up.add_done_callback(self._given_up.discard)
        self._running = asyncio.create_task(self._run())
        for call in calls:
            call.settle(None, TimeoutError())

    async def _answer(self, calls: Sequence[_Call[Argument, Result]]) -> None:
        if not calls:
            return
        try:
            results = await self.run_batch([call.argument for call in calls])
        except Exception as error:
            if len(calls) == 1 or self.general(error):
                for call in calls:
                    call.settle(None, error)
            else:
                for call in calls:
                    await self._answer([call])
        else:
            for call, result in zip(calls, results, strict=True):
                call.settle(result, None)
