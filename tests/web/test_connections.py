"""How many connections are open, which ones are closed, and what the log says about it."""

from __future__ import annotations

import asyncio
import logging
import resource
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from aiohttp import web

from bot.web.app import create_runner
from bot.web.connections import (
    ANSWER_SECONDS,
    HEAD_SECONDS,
    IDLE_SECONDS,
    MOST_DESCRIPTORS,
    Connections,
    LimitedSite,
    connections_allowed,
    raise_descriptor_limit,
)
from sandbox.processes import LONGEST_LINE, Program, end_with_parent
from tests.waiting import until
from tests.web.conftest import Site
from tests.web.process import answer_to, serving

REQUEST = b"GET /quick HTTP/1.1\r\nHost: bot\r\n\r\n"
SLOW = b"GET /slow HTTP/1.1\r\nHost: bot\r\n\r\n"
HEAD = b"POST /body HTTP/1.1\r\nHost: bot\r\nContent-Length: 4\r\n\r\n"
MOST = 4


@dataclass
class Place:
    """A server with few places; `/slow`, and `/body`, which is read, answer once `go` is set, and `/quick` at once."""

    port: int
    connections: Connections
    clock: list[float]
    go: asyncio.Event
    paths: list[str]
    stack: AsyncExitStack
    open: list[asyncio.StreamWriter] = field(default_factory=list)

    async def connect(self, sent: bytes = b"") -> asyncio.StreamReader:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.stack.callback(writer.close)
        self.open.append(writer)
        count = len(self.paths)
        writer.write(sent)
        if sent == SLOW or sent.startswith(HEAD):
            await until(lambda: len(self.paths) > count)
        return reader

    async def waiting(self, count: int) -> None:
        await until(lambda: self.connections.open == count)


async def closed(reader: asyncio.StreamReader) -> None:
    """Wait until the server has closed a connection without an answer."""
    with suppress(ConnectionResetError):
        assert await reader.read() == b""


@pytest.fixture
async def place() -> AsyncIterator[Place]:
    clock, go, paths = [0.0], asyncio.Event(), list[str]()
    connections = Connections(MOST, clock=lambda: clock[0])
    app = web.Application(middlewares=[connections.middleware()])

    async def quick(_: web.Request) -> web.Response:
        return web.Response(text="quick")

    async def slow(_: web.Request) -> web.Response:
        paths.append("slow")
        await go.wait()
        return web.Response(text="slow")

    async def body(request: web.Request) -> web.Response:
        paths.append("body")
        await request.read()
        await go.wait()
        return web.Response(text="body")

    app.router.add_post("/body", body)
    app.router.add_get("/quick", quick)
    app.router.add_get("/slow", slow)
    runner = create_runner(app)
    await runner.setup()
    async with AsyncExitStack() as stack:
        stack.push_async_callback(runner.cleanup)
        stack.callback(go.set)
        await LimitedSite(runner, "127.0.0.1", 0, connections).start()
        yield Place(runner.addresses[0][1], connections, clock, go, paths, stack)


async def test_a_newcomer_gets_the_place_of_the_oldest_connection_without_a_request(place: Place) -> None:
    half_open = []
    for number in range(MOST):
        half_open.append(await place.connect(b"GET /qui"))
        await place.waiting(number + 1)
        place.clock[0] += 1
    assert (await answer_to(await place.connect(REQUEST)))[0] == 200
    await closed(half_open[0])
    assert place.connections.open == MOST


async def test_a_connection_served_before_keeps_its_place_before_one_without_a_request(place: Place) -> None:
    served = await place.connect(REQUEST)
    assert (await answer_to(served))[0] == 200
    for number in range(MOST - 1):
        place.clock[0] += 1
        await place.connect()
        await place.waiting(number + 2)
    assert (await answer_to(await place.connect(REQUEST)))[0] == 200
    place.open[0].write(REQUEST)
    assert (await answer_to(served))[0] == 200


async def test_a_new_connection_gets_a_503_while_all_others_are_being_answered(place: Place) -> None:
    busy = [await place.connect(SLOW) for _ in range(MOST)]
    refused = await place.connect(REQUEST)
    head = await refused.readuntil(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 503 ")
    assert b"Retry-After: 5\r\n" in head
    place.go.set()
    assert [(await answer_to(peer))[0] for peer in busy] == [200] * MOST
    assert (await answer_to(await place.connect(REQUEST)))[0] == 200


async def test_bodies_that_do_not_arrive_keep_nobody_out(place: Place) -> None:
    arriving = []
    for _ in range(MOST):
        arriving.append(await place.connect(HEAD + b"{"))
        place.clock[0] += 1
    newcomer = await place.connect(HEAD + b"{}{}")
    await closed(arriving[0])
    place.go.set()
    assert (await answer_to(newcomer))[0] == 200


@pytest.mark.parametrize("pieces", [(b"{}{}",), (b"{", b"}{}")])
async def test_a_connection_with_a_complete_body_counts_as_being_answered(
    place: Place, pieces: tuple[bytes, ...]
) -> None:
    first = [await place.connect(HEAD + pieces[0]) for _ in range(MOST)]
    for piece in pieces[1:]:
        for writer in place.open:
            writer.write(piece)
    await until(lambda: place.connections.busy == MOST)
    assert (await (await place.connect(REQUEST)).readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 503 ")
    place.go.set()
    assert [(await answer_to(peer))[0] for peer in first] == [200] * MOST


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [
        (b"", HEAD_SECONDS),
        (b"GET /qui", HEAD_SECONDS),
        (REQUEST, IDLE_SECONDS),
        (SLOW, ANSWER_SECONDS),
        (HEAD, ANSWER_SECONDS),
    ],
)
async def test_a_connection_that_does_not_change_for_too_long_is_closed(
    place: Place, sent: bytes, seconds: float
) -> None:
    reader = await place.connect(sent)
    if sent == REQUEST:
        assert (await answer_to(reader))[0] == 200
    await place.waiting(1)
    place.clock[0] += seconds - 0.5
    place.connections.sweep()
    assert place.connections.open == 1
    place.clock[0] += 0.5
    place.connections.sweep()
    assert place.connections.open == 0
    await closed(reader)


async def test_the_sweep_runs_by_itself(place: Place) -> None:
    reader = await place.connect(b"GET /qui")
    await place.waiting(1)
    place.clock[0] += HEAD_SECONDS
    await closed(reader)


@contextmanager
def descriptors(most: int) -> Iterator[None]:
    """Limit the descriptors of processes started in the block."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


@pytest.mark.parametrize(
    ("most", "soft", "allowed"), [(256, 1024, 256), (256, 512, 256), (256, 511, 255), (256, 256, 128)]
)
def test_connections_use_at_most_half_of_the_descriptors(most: int, soft: int, allowed: int) -> None:
    with descriptors(soft):
        assert connections_allowed(most) == allowed


def test_the_bot_may_open_as_many_files_as_the_operator_allows() -> None:
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    with descriptors(64):
        raise_descriptor_limit()
        soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        assert soft == (MOST_DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, MOST_DESCRIPTORS))


CROWD = 280


def open_descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@asynccontextmanager
async def crowd(port: int, count: int) -> AsyncIterator[None]:
    """Hold this many half-open connections."""
    async with AsyncExitStack() as stack:
        for _ in range(count):
            _, writer = await asyncio.open_connection("127.0.0.1", port)
            stack.callback(writer.close)
            writer.write(b"POST /webhook HTTP/1.1\r\n")
        yield


async def healthy(port: int) -> bool:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(b"GET /healthz HTTP/1.1\r\nHost: bot\r\nConnection: close\r\n\r\n")
        return (await answer_to(reader))[0] == 200
    finally:
        writer.close()


async def launch_limited(
    module: str, *arguments: str, env: Mapping[str, str], cwd: Path | None = None, merged: bool = False
) -> Program:
    """Start a module as a program that can never open more than 256 files: the bot raises a limit that it may raise."""
    return await asyncio.create_subprocess_exec(
        "/bin/sh",
        "-c",
        'ulimit -n 256 && exec "$@"',
        "sh",
        sys.executable,
        "-m",
        module,
        *arguments,
        env=env,
        cwd=cwd,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT if merged else asyncio.subprocess.PIPE,
        limit=LONGEST_LINE,
        preexec_fn=end_with_parent,
    )


async def test_a_silent_crowd_keeps_nobody_out_and_fills_no_log(tmp_path: Path) -> None:
    running = serving(tmp_path, launch=launch_limited)
    bot = await running.__aenter__()
    try:
        printed = sum(map(len, bot.output))
        async with crowd(bot.port, CROWD):
            for _ in range(20):
                assert await healthy(bot.port)
        assert open_descriptors(bot.pid) < 256
        assert sum(map(len, bot.output)) - printed < 10_000
    finally:
        await running.__aexit__(None, None, None)


@pytest.mark.parametrize(
    "request_line",
    [
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: a\r\nbad header\r\n\r\n",
        b"\x16\x03\x01\r\n\r\n",
    ],
)
async def test_a_request_that_is_not_http_is_refused_and_logged_once_a_second(
    site: Site, caplog: pytest.LogCaptureFixture, request_line: bytes
) -> None:
    for _ in range(20):
        reader, writer = await asyncio.open_connection("127.0.0.1", int(site.url.rpartition(":")[2]))
        writer.write(request_line)
        assert (await answer_to(reader))[0] == 400
        writer.close()
    lines = [record for record in caplog.records if record.name.startswith(("aiohttp", "bot.web"))]
    assert len(lines) < 10
    assert not [record for record in lines if record.exc_info]
    assert all(record.levelno <= logging.WARNING for record in lines)


@pytest.mark.parametrize(
    "sent",
    [
        b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET /nowhere HTTP/1.1\r\nHost: a\r\n\r\n",
        b"GET / HTTP/9.9\r\n\r\n",
    ],
)
async def test_no_answer_names_versions_of_software(site: Site, sent: bytes) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(site.url.rpartition(":")[2]))
    writer.write(sent)
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    writer.close()
    assert b"\r\nserver: nightjar\r\n" in head
    assert b"python" not in head
    assert b"aiohttp" not in head


@pytest.mark.parametrize(("name", "count", "status"), [("x", 63, 200), ("x", 64, 400)])
async def test_the_number_of_headers_is_limited(site: Site, name: str, count: int, status: int) -> None:
    lines = "".join(f"{name}-{number}: 1\r\n" for number in range(count))
    assert (await paths(site, f"GET /healthz HTTP/1.1\r\nHost: bot\r\n{lines}\r\n"))[0] == status


@pytest.mark.parametrize(("length", "status"), [(4000, 200), (5000, 400)])
async def test_the_length_of_a_header_and_of_a_path_is_limited(site: Site, length: int, status: int) -> None:
    long = "x" * length
    assert (await paths(site, f"GET /healthz HTTP/1.1\r\nHost: bot\r\nX-Long: {long}\r\n\r\n"))[0] == status
    assert (await paths(site, f"GET /healthz?{long} HTTP/1.1\r\nHost: bot\r\n\r\n"))[0] == status


async def paths(site: Site, request: str) -> tuple[int, bytes]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(site.url.rpartition(":")[2]))
    try:
        writer.write(request.encode())
        return await answer_to(reader)
    finally:
        writer.close()
