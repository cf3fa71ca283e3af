"""Tell the other processes on a PostgreSQL server that jobs may run.

NOTIFY takes a lock of the whole server until its transaction is committed, with the wait for the disk. So no
transaction that writes uses it: a trigger sends a message to its own client instead (`ANNOUNCED` in
`bot.engine.postgres.schema`). After the commit, the client wakes its own worker. If that leaves jobs, the client wakes
the others by a transaction that contains nothing but the NOTIFY, for which PostgreSQL does not wait for the disk
(docs/decisions/notifications-after-the-commit.md).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from bot.engine.sql.errors import DatabaseFailure

PAUSE = 0.05
"""Seconds in which the worker of a process may take its jobs before the other processes are notified."""

NOT_ANNOUNCED = "could not wake the workers of other processes; they find the jobs at their next poll"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(slots=True)
class JobAnnouncer:
    """Calls `notify` once for all calls of `announce` within `pause` seconds, unless `withdraw` is called meanwhile."""

    notify: Callable[[], Awaitable[None]]
    pause: float = PAUSE
    _pending: bool = False
    _running: asyncio.Task[None] | None = field(default=None)

    def announce(self) -> None:
        """Notify soon."""
        self._pending = True
        if self._running is None or self._running.done():
            self._running = asyncio.create_task(self._run())

    def withdraw(self) -> None:
        """Don't notify: nothing is left for others."""
        self._pending = False

    async def _run(self) -> None:
        while self._pending:
            await asyncio.sleep(self.pause)
            if self._pending:
                await self._notify()

    async def _notify(self) -> None:
        self._pending = False
        try:
            await self.notify()
        except DatabaseFailure as error:
            log.warning(NOT_ANNOUNCED, error=type(error.__cause__ or error).__name__)
        except asyncio.CancelledError:
            self._pending = True
            raise

    async def finish(self) -> None:
        """Notify now if a notification is pending, and end."""
        running, self._running = self._running, None
        if running is not None:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
        if self._pending:
            await self._notify()
