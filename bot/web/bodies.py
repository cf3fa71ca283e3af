"""Read the bodies of requests into one buffer each, with a limit on the bytes of all of them together.

Anybody can send a body to the webhook, because the server can only check the signature of a whole body. So the limit
counts the bytes that have arrived: a `Content-Length` reserves no memory. At the limit, the server refuses the body
that has been arriving for the longest (docs/decisions/memory-limit-for-webhook-bodies.md).
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import dataclass, field
from types import TracebackType

from aiohttp import web
from nightjar_formats.items import first_of

from bot.web.problems import Problem
from bot.web.texts import BODY_INCOMPLETE, BODY_TOO_LARGE, BODY_TOO_SLOW, TOO_MANY_BODIES

IN_FLIGHT = 64 * 1024 * 1024
"""The most bytes of bodies in memory, unless app.yaml sets another limit."""
READ_SECONDS = 10.0
"""How long a body may take to arrive; GitHub itself gives up on a delivery after ten seconds."""
RETRY_AFTER = {"Retry-After": "30"}


@dataclass(eq=False, slots=True)
class HeldBody:
    """A context that reads the body of a request, as it was sent, and holds it; afterwards it is empty.

    Entering raises `Problem`: 413 for a body over `most`, 408 for a slow one, 400 for one that was cut off, and 503 for
    one that was evicted. To evict it while it arrives, expire its timeout.
    """

    # Not a generator with a decorator, which took 9 microseconds of each delivery instead of 1.5.

    bodies: Bodies
    request: web.Request
    timeout: asyncio.Timeout | None = None
    buffer: bytearray = field(default_factory=bytearray)
    is_evicted: bool = False

    async def __aenter__(self) -> bytearray:
        try:
            await self.bodies.fill(self)
        except BaseException:
            self.bodies.release(self)
            raise
        return self.buffer

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.bodies.release(self)


class Bodies:
    """The bodies of all requests in flight: at most `limit` bytes together, and `most` bytes each."""

    def __init__(self, limit: int, most: int) -> None:
        self._limit = limit
        self._most = most
        self._arriving: dict[HeldBody, None] = {}
        self.held = 0
        """The bytes in memory now."""

    async def fill(self, body: HeldBody) -> None:
        """Read the body of its request. Raises `Problem`, as `HeldBody` describes."""
        request = body.request
        if (request.content_length or 0) > self._most:
            raise Problem(413, BODY_TOO_LARGE.format(most=self._most))
        await request_body(request)
        self._arriving[body] = None
        try:
            if request.content.is_eof():
                # Nearly always: a body that arrived with its headers needs no clock.
                self._take(body, request.content.read_nowait())
            else:
                body.timeout = asyncio.timeout(READ_SECONDS)
                async with body.timeout:
                    while (chunk := await request.content.readany()) and not body.is_evicted:
                        self._take(body, chunk)
        except TimeoutError:
            if not body.is_evicted:
                raise Problem(408, BODY_TOO_SLOW.format(seconds=READ_SECONDS)) from None
        except (ConnectionError, web.RequestPayloadError):
            raise Problem(400, BODY_INCOMPLETE) from None
        finally:
            # A whole body is about to be answered, so nothing evicts it any more.
            self._arriving.pop(body, None)
        if body.is_evicted:
            raise Problem(503, TOO_MANY_BODIES, headers=RETRY_AFTER)

    def _take(self, body: HeldBody, chunk: bytes) -> None:
        if len(body.buffer) + len(chunk) > self._most:
            raise Problem(413, BODY_TOO_LARGE.format(most=self._most))
        self._make_room(body, len(chunk))
        body.buffer += chunk
        self.held += len(chunk)

    def _make_room(self, newcomer: HeldBody, length: int) -> None:
        """Evict the bodies that have been arriving for the longest. Raises `Problem` if the newcomer is the oldest."""
        while self.held + length > self._limit:
            oldest = first_of(self._arriving)
            if oldest is newcomer:
                raise Problem(503, TOO_MANY_BODIES, headers=RETRY_AFTER)
            del self._arriving[oldest]
            oldest.is_evicted = True
            self.release(oldest)
            # An expired timeout cannot be rescheduled; 0 is in the past of the loop's clock.
            if oldest.timeout is not None and not oldest.timeout.expired():
                oldest.timeout.reschedule(0)

    def release(self, body: HeldBody) -> None:
        """Forget a body."""
        self.held -= len(body.buffer)
        # A thread of a cancelled request may still read the buffer; it ends soon.
        with contextlib.suppress(BufferError):
            body.buffer.clear()


async def answer_without_the_body(_: web.Request) -> None:
    """Stand in for aiohttp's handler of `Expect`, which would request the body before any check.

    A final answer instead of `100 Continue` is right where the body is not wanted (RFC 9110, 10.1.1).
    """


async def request_body(request: web.Request) -> None:
    """Ask for the body of a request whose sender waits until it is wanted."""
    # In HTTP/1.0 it means nothing: https://www.rfc-editor.org/rfc/rfc9110#name-expect
    if request.headers.get("Expect", "").lower() == "100-continue" and request.version >= (1, 1):
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        # As aiohttp's own handler does; else it takes these bytes for the beginning of the answer.
        request.writer.output_size = 0
