"""Keep the number of open connections below a limit, and close those that only take up a place.

A connection costs memory and a descriptor, which the database and GitHub need too. If all places are taken, the server
closes a connection for a newcomer: one that has never sent a whole request, else the one that has been idle for the
longest. It refuses the newcomer only if it is answering a request on every connection. While the body of a request is
still arriving, the server is not answering it: anybody can send headers and never send the body.
"""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import cast
from weakref import WeakKeyDictionary

import structlog
from aiohttp import StreamReader, web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.typedefs import Middleware

from bot.core.ports import open_sockets
from bot.core.rarely import Rarely
from bot.web.accepting import Acceptor
from bot.web.problems import Answer

MOST = 1024
"""The most open connections, unless app.yaml or the limit on descriptors sets another limit."""
MOST_DESCRIPTORS = 1 << 17
"""Twice the most connections that app.yaml can allow."""
HEAD_SECONDS = 15.0
"""How long a new connection may take to send the headers of its first request."""
FIRST_REQUEST_POLL, FIRST_REQUEST_POLLS = 0.01, 100
"""A server that stops checks this often, and this many times at most, whether new connections have sent a request."""
IDLE_SECONDS = 75.0
"""How long a connection may wait for its next request. Longer than the 60 s for which proxies usually keep theirs."""
ANSWER_SECONDS = 120.0
"""How long a request may take; the longest, a lab's that waits for work, takes a minute."""
SWEEP_SECONDS = 1.0
"""The least time between two searches for connections to close."""

FULL = b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 5\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def raise_descriptor_limit() -> None:
    """Let this process open as many files as the operator allows; many systems begin with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != resource.RLIM_INFINITY and (hard == resource.RLIM_INFINITY or soft < min(hard, MOST_DESCRIPTORS)):
        most = MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def connections_allowed(most: int) -> int:
    """Return how many connections may be open: `most`, or half of this process's descriptors if that is less."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The other half is for the database, GitHub and files.
    return most if soft == resource.RLIM_INFINITY else max(1, min(most, soft // 2))


@dataclass(slots=True)
class _Place:
    """An open connection. `changed_at` is when it was opened, or when its last request came or ended.

    `body` is the body of the request in progress; `has_served` says whether a request has been answered.
    """

    changed_at: float
    body: StreamReader | None = None
    has_served: bool = False

    @property
    def busy(self) -> bool:
        """Return whether a request is being answered, whose whole body has arrived."""
        return self.body is not None and self.body.is_eof()

    @property
    def patience(self) -> float:
        """Return for how many seconds the connection may stay open without a change."""
        if self.body is not None:
            return ANSWER_SECONDS
        return IDLE_SECONDS if self.has_served else HEAD_SECONDS


class Connections:
    """The open connections of one server, at most `most`; `clock` is in seconds from any starting point."""

    def __init__(self, most: int, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most
        self._clock = clock
        # Weak references: aiohttp receives all calls after `connection_made`, so nothing says when one closes.
        self._places: WeakKeyDictionary[asyncio.BaseTransport, _Place] = WeakKeyDictionary()
        self._sweeping: asyncio.TimerHandle | None = None
        self._rarely = Rarely(clock)

    def admit(self, transport: asyncio.Transport) -> bool:
        """Give a new connection a place, and return True; or refuse it, and return False."""
        open_places = {peer: place for peer, place in self._places.items() if not peer.is_closing()}
        if len(open_places) >= self.most:
            idle = {peer: place for peer, place in open_places.items() if not place.busy}
            if (held_back := self._rarely.ready()) is not None:
                log.warning(
                    "all connections are in use", most=self.most, busy=len(open_places) - len(idle), held_back=held_back
                )
            if not idle:
                # Write the response directly: aiohttp has no protocol for this connection.
                transport.write(FULL)
                transport.close()
                return False
            # `close` would wait until the peer has read what is buffered. typeshed's BaseTransport lacks `abort`.
            longest_idle = min(idle, key=lambda peer: (idle[peer].has_served, idle[peer].changed_at))
            longest_idle.abort()  # type: ignore[attr-defined]
        self._places[transport] = _Place(self._clock())
        if self._sweeping is None:
            self._sweep_later()
        return True

    @property
    def open(self) -> int:
        """Return how many connections have a place."""
        return sum(not transport.is_closing() for transport in self._places)

    @property
    def new(self) -> int:
        """Return how many connections have sent no request yet."""
        return sum(
            place.body is None and not place.has_served
            for transport, place in self._places.items()
            if not transport.is_closing()
        )

    @property
    def busy(self) -> int:
        """Return how many connections are being answered."""
        return sum(place.busy for transport, place in self._places.items() if not transport.is_closing())

    def renew(self, request: web.Request) -> None:
        """Give a request more time, because more of its body has arrived."""
        place = self._places.get(request.transport) if request.transport is not None else None
        if place is not None:
            place.changed_at = self._clock()

    def sweep(self) -> None:
        """Close connections without a change for too long: silent newcomers, idle ones, peers that don't read."""
        current_time = self._clock()
        for transport, place in list(self._places.items()):
            if current_time - place.changed_at >= place.patience and not transport.is_closing():
                transport.abort()  # type: ignore[attr-defined]

    def _sweep_later(self) -> None:
        """Sweep when the next connection may have to be closed: an open one must not wake an idle bot every second.

        What happens meanwhile makes none of them due earlier than `HEAD_SECONDS` from then.
        """
        current_time = self._clock()
        left = min((place.changed_at + place.patience - current_time for place in self._places.values()), default=0.0)
        seconds = min(max(left, SWEEP_SECONDS), HEAD_SECONDS)
        self._sweeping = asyncio.get_running_loop().call_later(seconds, self._sweep_on)

    def _sweep_on(self) -> None:
        self._sweeping = None
        self.sweep()
        if self._places:
            self._sweep_later()

    def middleware(self) -> Middleware:
        """Return the middleware that records which connections are being answered."""

        @web.middleware
        async def record_request(request: web.Request, handler: Answer) -> web.StreamResponse:
            place = self._places.get(request.transport) if request.transport is not None else None
            if place is None:
                return await handler(request)
            place.body, place.changed_at = request.content, self._clock()
            try:
                return await handler(request)
            finally:
                # aiohttp writes the answer afterwards: a peer that does not read it counts as idle.
                place.body, place.has_served, place.changed_at = None, True, self._clock()

        return record_request


class _Newcomer(asyncio.Protocol):
    """Receives a connection, and hands it over to aiohttp if there is a place for it."""

    def __init__(self, connections: Connections, server: web.Server) -> None:
        self._connections = connections
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Don't use `isinstance`: uvloop has its own transport classes.
        transport = cast("asyncio.Transport", transport)
        if self._connections.admit(transport):
            handler = self._server()
            transport.set_protocol(handler)
            handler.connection_made(transport)


class LimitedSite(web.BaseSite):
    """A port that is listened on, as `web.TCPSite`, with a limit on open connections."""

    def __init__(
        self,
        runner: web.AppRunner,
        host: str,
        port: int,
        connections: Connections,
        listening: Sequence[socket.socket] = (),
    ) -> None:
        """Listen on copies of the sockets `listening`, which stay open in the end; without any, open sockets."""
        super().__init__(runner)
        self._host, self._port, self._connections, self._listening = host, port, connections, listening
        self._acceptor: Acceptor | None = None

    @property
    def name(self) -> str:
        """Return the address as a URL."""
        return f"http://{self._host}:{self._port}"

    async def start(self) -> None:
        """Listen."""
        await super().start()
        server = self._runner.server
        assert server is not None

        def newcomer() -> _Newcomer:
            return _Newcomer(self._connections, server)

        sockets = copies_of(self._listening) or await asyncio.to_thread(open_sockets, self._host, self._port)
        self._acceptor = Acceptor(sockets, newcomer)
        # aiohttp uses only `sockets` and `close` of a server.
        self._server = cast("asyncio.AbstractServer", self._acceptor)

    async def stop(self) -> None:
        """Accept no more connections, and let those that were just accepted send their first request.

        Their clients cannot know that nobody reads it. aiohttp closes idle connections next: those were answered.
        """
        await super().stop()
        if self._acceptor is None:
            return  # it could not start
        await self._acceptor.arrived()
        for _ in range(FIRST_REQUEST_POLLS):
            if not self._connections.new:
                break
            await asyncio.sleep(FIRST_REQUEST_POLL)

    def kept_open(self) -> tuple[socket.socket, ...]:
        """Return copies of the open sockets: after the site has stopped, connections wait there for another one."""
        return tuple(copies_of(self._acceptor.sockets)) if self._acceptor is not None else ()


def copies_of(sockets: Sequence[socket.socket]) -> list[socket.socket]:
    """Return copies of sockets, which stay open when the originals are closed."""
    return [listening.dup() for listening in sockets]


class Malformed(logging.Filter):
    """Log malformed requests in one line, at most once a second: aiohttp would write a traceback for each."""

    def __init__(self, rarely: Rarely | None = None) -> None:
        super().__init__()
        self._rarely = rarely or Rarely()

    def filter(self, record: logging.LogRecord) -> bool:
        """Say whether the record is to be written, and shorten it."""
        error = record.exc_info[1] if record.exc_info else None
        if not isinstance(error, HttpProcessingError):
            return True
        held_back = self._rarely.ready()
        if held_back is None:
            return False
        record.msg, record.args = "a request was malformed (held back before: %s)", (held_back,)
        record.exc_info, record.levelno, record.levelname = None, logging.WARNING, "WARNING"
        return True
