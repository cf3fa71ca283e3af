"""Concurrent callers share one request, and a cache holds its result for a while."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

from cachetools import TLRUCache

MOST = 1_000
"""Answers that one cache holds."""

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class SingleFlight(Generic[K, V]):
    """Concurrent callers with the same key share one answer, or one error."""

    def __init__(self) -> None:
        self._flights: dict[K, asyncio.Task[V]] = {}

    async def do(self, key: K, make: Callable[[], Awaitable[V]]) -> V:
        """Return what `make` returns. Concurrent callers share one call; cancelling one of them stops no other."""
        flight = self._flights.get(key)
        if flight is None:
            flight = asyncio.ensure_future(_awaited(make))
            self._flights[key] = flight
            flight.add_done_callback(lambda done: self._land(key, done))
        # Cancelling one caller must not cancel the call for which the others wait.
        return await asyncio.shield(flight)

    def forget(self, key: K) -> None:
        """Stop sharing the call in progress: only current callers get its answer; the next caller makes a new call."""
        self._flights.pop(key, None)

    def shared(self, key: K) -> bool:
        """Return, when called inside `make`, whether new callers still share this call; False after `forget`."""
        return self._flights.get(key) is asyncio.current_task()

    def _land(self, key: K, flight: asyncio.Task[V]) -> None:
        if self._flights.get(key) is flight:
            del self._flights[key]
        if not flight.cancelled():
            flight.exception()  # read, so that asyncio does not report it if all callers have given up


async def _awaited(make: Callable[[], Awaitable[V]]) -> V:
    return await make()


class Remembered(Generic[K, V]):
    """Cache each answer for `lasts(answer)` seconds, and each error for `error_lasts(error)`, in this process."""

    def __init__(
        self,
        lasts: Callable[[V], float],
        error_lasts: Callable[[Exception], float],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cached: TLRUCache[K, V | Exception] = TLRUCache(
            MOST,
            ttu=lambda _, cached, current_time: (
                current_time + (error_lasts(cached) if isinstance(cached, Exception) else lasts(cached))
            ),
            timer=clock,
        )
        self._flights: SingleFlight[K, V] = SingleFlight()

    async def get(self, key: K, make: Callable[[], Awaitable[V]]) -> V:
        """Return the cached value, or else what `make` returns; raises the error that `make` raised."""
        cached = self._cached.get(key)
        if isinstance(cached, Exception):
            # Each raise adds frames to the cached error, which would keep alive what they refer to.
            raise cached.with_traceback(None)
        return cached if cached is not None else await self._flights.do(key, lambda: self._make(key, make))

    def forget(self, key: K) -> None:
        """Drop the cached answer, and share a call in progress with nobody else: its answer may be outdated."""
        self._cached.pop(key, None)
        self._flights.forget(key)

    async def _make(self, key: K, make: Callable[[], Awaitable[V]]) -> V:
        try:
            made = await make()
        except Exception as error:
            self._store(key, error)
            raise
        self._store(key, made)
        return made

    def _store(self, key: K, made: V | Exception) -> None:
        if self._flights.shared(key):
            self._cached[key] = made
