"""Accept connections on listening sockets, on any event loop.

Event loops disagree on what to do when a process has no free descriptors. asyncio's tries as often as its backlog is
long, and logs a traceback each time. uvloop's (libuv) says nothing: it accepts and closes everything that waits, or
tries again at once, for ever. Here, connections wait until a descriptor is free, as the kernel holds them anyway.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable, Sequence

import structlog

from bot.core.ports import BACKLOG
from bot.core.rarely import Rarely

RETRY_SECONDS = 1.0
"""How long a socket pauses after it failed to accept a connection."""
OUT_OF_DESCRIPTORS = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Acceptor:
    """Accepts connections on `sockets`, which listen already, and gives each a protocol; `close` closes them."""

    def __init__(self, sockets: Sequence[socket.socket], protocol: Callable[[], asyncio.Protocol]) -> None:
        self.sockets = sockets
        self._protocol = protocol
        self._loop = asyncio.get_running_loop()
        self._retries: dict[socket.socket, asyncio.TimerHandle] = {}
        self._arriving: set[asyncio.Task[None]] = set()
        self._rarely = Rarely()
        for listening in sockets:
            listening.setblocking(False)
            self._loop.add_reader(listening, self._accept, listening)

    def close(self) -> None:
        """Accept no more connections; open ones stay open."""
        for listening in self.sockets:
            self._loop.remove_reader(listening)
            if (retry := self._retries.pop(listening, None)) is not None:
                retry.cancel()
            listening.close()
        self.sockets = ()

    async def arrived(self) -> None:
        """Wait until every accepted connection has its protocol."""
        await asyncio.gather(*self._arriving)

    def _accept(self, listening: socket.socket) -> None:
        for _ in range(BACKLOG):
            try:
                connection, _ = listening.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                if error.errno not in OUT_OF_DESCRIPTORS:
                    raise
                self._pause(listening, error)
                return
            connection.setblocking(False)
            arriving = self._loop.create_task(self._arrive(connection))
            self._arriving.add(arriving)
            arriving.add_done_callback(self._arriving.discard)

    def _pause(self, listening: socket.socket, error: OSError) -> None:
        if (held_back := self._rarely.ready(error.errno)) is not None:
            log.error("a connection could not be accepted", reason=str(error), held_back=held_back)
        self._loop.remove_reader(listening)
        self._retries[listening] = self._loop.call_later(RETRY_SECONDS, self._resume, listening)

    def _resume(self, listening: socket.socket) -> None:
        del self._retries[listening]
        self._loop.add_reader(listening, self._accept, listening)

    async def _arrive(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._protocol, connection)
        except OSError as error:
            connection.close()
            log.warning("a connection ended before it was used", reason=str(error))
