"""Track whether deliveries can be stored; after a failure, probe until they can be stored again.

`/readyz` must say whether webhooks can be stored. A load balancer sends none to a process that is not ready. So the
process stores a delivery of its own, in the same way as a webhook: it meets the same errors.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable

from bot.core.errors import StorageError

NOT_STORABLE = "deliveries cannot be stored ({reason})"


class StorageProbe:
    """Remembers whether the last delivery could be stored.

    `store` stores a delivery, or raises `StorageError`. After a failure it is called every `pause` seconds until it
    succeeds; then `recovered` is called.
    """

    def __init__(self, store: Callable[[], Awaitable[object]], recovered: Callable[[], None], pause: float) -> None:
        self._store = store
        self._recovered = recovered
        self._pause = pause
        self._trying: asyncio.Task[None] | None = None
        self.problem: str | None = None
        """Why deliveries cannot be stored; None if they can."""

    def failed(self, reason: str) -> None:
        """Note that a delivery could not be stored, or that the database failed otherwise."""
        self.problem = NOT_STORABLE.format(reason=reason)
        if self._trying is None or self._trying.done():
            self._trying = asyncio.create_task(self._try_for_ever(), name="storage probe")

    def succeeded(self) -> None:
        """Note that a delivery was stored."""
        if self.problem is not None:
            self.problem = None
            self._recovered()

    async def close(self) -> None:
        """Stop trying."""
        if self._trying is not None:
            self._trying.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._trying

    async def _try_for_ever(self) -> None:
        while self.problem is not None:
            try:
                await self._store()
            except StorageError as error:
                self.problem = NOT_STORABLE.format(reason=error)
                await asyncio.sleep(self._pause)
            else:
                self.succeeded()
