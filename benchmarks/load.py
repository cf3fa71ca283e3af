"""Generate load from a separate process: signed deliveries or page requests over several connections, with their waits.

It speaks just enough HTTP/1.1, so that it uses little processor time itself. `python -m benchmarks.load` reads one
`Load` as JSON from standard input and writes one `Waits` to standard output.
"""

from __future__ import annotations

import asyncio
import hmac
import itertools
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.traffic import SECRET, Template, read

FIRST_NUMBER = 5_000_000_000
KEY = SECRET.encode()
ENOUGH = 20.0
"""The most seconds to wait for an answer: longer than GitHub does."""


@dataclass(frozen=True, slots=True)
class Load:
    """What to send, and where.

    With `rate` None, each connection sends its next request as soon as the last one was answered. With a number, that
    many requests a second are sent, each at a moment fixed in advance. Its wait counts from that moment, even if all
    connections were busy then: a server that stalls gets no less load, and its stall counts for each delayed request.
    """

    port: int
    templates: str
    connections: int
    seconds: float
    rate: float | None = None
    warm_up: float = 1.0
    count: int | None = None
    """Stop after this many requests, whatever the time."""
    pages: tuple[str, ...] = ()
    """Addresses of pages to request in turn, instead of sending deliveries."""
    first: int | None = None
    """The first number of the GUIDs. Two loads with the same first number send the same deliveries."""


@dataclass(slots=True)
class Waits:
    """The result of a load: waits in milliseconds, without those of the warm-up."""

    sent: int = 0
    seconds: float = 0.0
    per_second: float = 0.0
    p50: float = 0.0
    p99: float = 0.0
    longest: float = 0.0
    statuses: dict[str, int] = field(default_factory=dict)
    busy: float = 0.0
    """The generator's share of one core. Near 1, the generator is what limits the load."""


async def generate(load: Load) -> Waits:
    """Run a load in a separate process; return the result."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "benchmarks.load",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        output, _ = await process.communicate(json.dumps(asdict(load)).encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if process.returncode:
        raise RuntimeError("the load generator failed; its error is above")
    return Waits(**json.loads(output))


class _Connection(asyncio.Protocol):
    """One connection that alternately sends a request and reads its answer."""

    def __init__(self) -> None:
        self._heard = bytearray()
        self._answer: asyncio.Future[int] | None = None
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError("the server closed the connection"))

    def data_received(self, data: bytes) -> None:
        self._heard += data
        head, separator, body = self._heard.partition(b"\r\n\r\n")
        if not separator:
            return
        _, _, length = head.lower().partition(b"content-length: ")
        if len(body) >= int(length.partition(b"\r\n")[0]) and self._answer is not None:
            self._heard.clear()
            self._answer.set_result(int(head[9:12]))

    async def exchange(self, request: bytes) -> int:
        """Send a request and return the status of its answer."""
        assert self._transport is not None
        self._answer = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return await self._answer


class _Requests:
    """Endless requests, each with its own GUID and about a different subject."""

    def __init__(self, order: Sequence[Template], first: int) -> None:
        self._order = itertools.cycle(order)
        self._guids = itertools.count(first)
        self._sent: Counter[int] = Counter()

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        template, guid = next(self._order), next(self._guids)
        number = guid
        if template.numbers:
            turn = self._sent[id(template)]
            number, self._sent[id(template)] = template.numbers[turn % len(template.numbers)], turn + 1
        body = template.body(number)
        signature = hmac.digest(KEY, body, "sha256").hex()
        head = (
            "POST /webhook HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: */*\r\nUser-Agent: GitHub-Hookshot/5ad4b0x\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nX-GitHub-Event: {template.event}\r\n"
            f"X-GitHub-Delivery: 00000000-0000-4000-8000-{guid:016d}\r\n"
            f"X-Hub-Signature-256: sha256={signature}\r\n\r\n"
        )
        return head.encode() + body


def new_first() -> int:
    """Return the first number of new GUIDs: two runs on one database must not send the same deliveries."""
    return FIRST_NUMBER + time.time_ns() // 1000 % 10**12 * 1000


def _page_requests(addresses: Sequence[str]) -> Iterator[bytes]:
    for address in itertools.cycle(addresses):
        head = f"GET {address} HTTP/1.1\r\nHost: 127.0.0.1\r\nAccept: text/html\r\nAccept-Encoding: gzip\r\n\r\n"
        yield head.encode()


class _Run:
    def __init__(self, load: Load, requests: Iterator[bytes]) -> None:
        self._load = load
        self._requests = requests
        self._began = time.perf_counter() + 0.1
        self._turns = itertools.count()
        self._waits: list[float] = []
        self._statuses: Counter[str] = Counter()
        self._last = self._began
        self._cpu = 0.0

    async def run(self) -> Waits:
        loop = asyncio.get_running_loop()
        opened = [
            await loop.create_connection(_Connection, "127.0.0.1", self._load.port)
            for _ in range(self._load.connections)
        ]
        work = self._as_fast_as_it_goes if self._load.rate is None else self._at_a_rate
        self._began = time.perf_counter() + 0.1
        self._cpu = time.process_time()
        await asyncio.gather(*(work(connection) for _, connection in opened))
        for transport, _ in opened:
            transport.close()
        return self._result()

    async def _as_fast_as_it_goes(self, connection: _Connection) -> None:
        await asyncio.sleep(self._began - time.perf_counter())
        end = self._began + self._load.warm_up + self._load.seconds
        while (current_time := time.perf_counter()) < end and self._wanted(next(self._turns)):
            await self._exchange(connection, current_time)

    async def _at_a_rate(self, connection: _Connection) -> None:
        assert self._load.rate is not None
        for turn in self._turns:
            scheduled = self._began + turn / self._load.rate
            if scheduled > self._began + self._load.warm_up + self._load.seconds or not self._wanted(turn):
                return
            if (early := scheduled - time.perf_counter()) > 0:
                await asyncio.sleep(early)
            await self._exchange(connection, scheduled)

    def _wanted(self, turn: int) -> bool:
        return self._load.count is None or turn < self._load.count

    async def _exchange(self, connection: _Connection, since: float) -> None:
        async with asyncio.timeout(ENOUGH):
            status = await connection.exchange(next(self._requests))
        current_time = time.perf_counter()
        self._statuses[str(status)] += 1
        if since >= self._began + self._load.warm_up:
            self._waits.append(current_time - since)
            self._last = current_time

    def _result(self) -> Waits:
        waits = sorted(self._waits)
        seconds = self._last - self._began - self._load.warm_up

        def percentile(share: float) -> float:
            return round(1000 * waits[min(len(waits) - 1, int(share * len(waits)))], 2)

        return Waits(
            sent=sum(self._statuses.values()),
            seconds=round(seconds, 3),
            per_second=round(len(waits) / seconds, 1),
            p50=percentile(0.5),
            p99=percentile(0.99),
            longest=percentile(1.0),
            statuses=dict(self._statuses),
            busy=round((time.process_time() - self._cpu) / (self._last - self._began), 2),
        )


def main() -> None:
    """Run the load that standard input describes."""
    load = Load(**json.load(sys.stdin))
    requests = (
        _page_requests(load.pages)
        if load.pages
        else iter(_Requests(read(Path(load.templates)), load.first or new_first()))
    )
    waits = asyncio.run(_Run(load, requests).run())
    json.dump(asdict(waits), sys.stdout)


if __name__ == "__main__":
    main()
