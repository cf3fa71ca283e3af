"""What is refused before a body is read, and how much memory bodies in flight may use together."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from io import BytesIO

import pytest

from bot.web.webhook import MAX_BODY
from tests.waiting import until
from tests.web.conftest import Site, running_site
from tests.web.process import answer_to

BODY = b'{"repository":{"id":7}}'
LIMIT = 1 << 20
PART = 700 * 1024
"""More than half of the limit."""
WRONG = "sha256=" + "0" * 64


@dataclass
class Wire:
    """One connection whose every byte the test writes."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, *pieces: bytes) -> None:
        for piece in pieces:
            self.writer.write(piece)
        await self.writer.drain()

    async def answer(self) -> tuple[int, bytes]:
        return await answer_to(self.reader)


@asynccontextmanager
async def wire(site: Site) -> AsyncIterator[Wire]:
    reader, writer = await asyncio.open_connection("127.0.0.1", int(site.url.rpartition(":")[2]))
    try:
        yield Wire(reader, writer)
    finally:
        writer.close()


def head(site: Site, framing: str, **changed: str | None) -> bytes:
    """Return the head of a webhook; `changed` headers have _ for -, and None leaves one out."""
    headers: dict[str, str | None] = {"Host": "bot", **site.headers(BODY)}
    headers |= {name.replace("_", "-"): value for name, value in changed.items()}
    lines = [f"{name}: {value}" for name, value in headers.items() if value is not None]
    return "\r\n".join(["POST /webhook HTTP/1.1", *lines, framing]).encode() + b"\r\n\r\n"


LENGTH = f"Content-Length: {MAX_BODY}"


@pytest.mark.parametrize(
    ("framing", "changed", "status"),
    [
        (LENGTH, {"X_Hub_Signature_256": None}, 401),
        (LENGTH, {"X_Hub_Signature_256": "sha256=0"}, 401),
        (LENGTH, {"X_GitHub_Event": None}, 400),
        (LENGTH, {"X_GitHub_Event": "Push!"}, 400),
        (LENGTH, {"X_GitHub_Delivery": None}, 400),
        (LENGTH, {"X_GitHub_Delivery": "two words"}, 400),
        (LENGTH, {"Content_Type": "application/x-www-form-urlencoded"}, 400),
        (f"Content-Length: {MAX_BODY + 1}", {}, 413),
        ("Transfer-Encoding: chunked", {"X_Hub_Signature_256": None}, 401),
    ],
)
async def test_bad_headers_are_answered_before_any_of_the_body_is_sent(
    site: Site, framing: str, changed: dict[str, str | None], status: int
) -> None:
    async with wire(site) as connection:
        await connection.send(head(site, framing, **changed))
        assert (await connection.answer())[0] == status


async def test_a_client_that_expects_100_is_refused_if_its_headers_are_bad(site: Site) -> None:
    async with wire(site) as connection:
        await connection.send(head(site, LENGTH, Expect="100-continue", X_GitHub_Event=None))
        assert (await connection.answer())[0] == 400


async def test_a_client_that_expects_100_may_continue_if_its_headers_are_good(site: Site) -> None:
    async with wire(site) as connection:
        await connection.send(head(site, f"Content-Length: {len(BODY)}", Expect="100-continue"))
        assert (await connection.answer())[0] == 100
        await connection.send(BODY)
        assert (await connection.answer())[0] == 202


@pytest.mark.parametrize("path", ["/healthz", "/help", "/api/v1/openapi.json"])
async def test_other_routes_read_no_body(site: Site, path: str) -> None:
    async with wire(site) as connection:
        request = f"GET {path} HTTP/1.1\r\nHost: bot\r\nExpect: 100-continue\r\nContent-Length: 10\r\n\r\n"
        await connection.send(request.encode())
        assert (await connection.answer())[0] == 200


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("POST", "/nothing", 404), ("PUT", "/api/v1/nothing", 404), ("POST", "/healthz", 405), ("GET", "/webhook", 405)],
)
async def test_a_missing_route_asks_nobody_for_a_body(site: Site, method: str, path: str, status: int) -> None:
    async with wire(site) as connection:
        request = f"{method} {path} HTTP/1.1\r\nHost: bot\r\nExpect: 100-continue\r\nContent-Length: {MAX_BODY}\r\n\r\n"
        await connection.send(request.encode())
        assert (await connection.answer())[0] == status


async def test_the_whole_body_may_be_sent_before_a_refusal_is_read(site: Site) -> None:
    async with wire(site) as connection:
        await connection.send(head(site, LENGTH, X_GitHub_Event=None), bytes(MAX_BODY))
        assert (await connection.answer())[0] == 400


@pytest.fixture
async def small(sqlite_url: str) -> AsyncIterator[Site]:
    """Return an application whose bodies may use 1 MiB together."""
    async with running_site(sqlite_url, body_bytes=LIMIT) as running:
        yield running


def padded(length: int) -> bytes:
    start, end = b'{"pad":"', b'"}'
    return start + b"x" * (length - len(start) - len(end)) + end


@pytest.mark.parametrize("length", [LIMIT - 1, LIMIT])
async def test_a_body_up_to_the_limit_is_accepted(small: Site, length: int) -> None:
    assert (await small.post(padded(length)))[0] == 202


async def test_over_the_limit_a_body_is_refused_for_now(small: Site) -> None:
    body = padded(LIMIT + 1)
    async with small.client.post(f"{small.url}/webhook", data=BytesIO(body), headers=small.headers(body)) as answer:
        assert answer.status == 503
        assert int(answer.headers["Retry-After"]) > 0
        assert "safely send this one again" in await answer.text()
    assert await small.stored() == []
    assert (await small.post(padded(LIMIT)))[0] == 202


async def test_the_body_that_has_been_arriving_for_the_longest_gives_way(small: Site) -> None:
    """A sender that stalls on purpose cannot keep others out."""
    body = padded(PART)
    async with wire(small) as slow:
        await slow.send(head(small, f"Content-Length: {PART + 1}"), body)
        await small.holds(PART)
        assert (await small.post(body, guid="guid-2"))[0] == 202
        status, problem = await slow.answer()
        assert (status, b"Too many large bodies" in problem) == (503, True)
    assert await small.stored() == ["guid-2"]


async def test_a_declared_but_unsent_body_holds_nothing(small: Site) -> None:
    async with wire(small) as first, wire(small) as second:
        for connection in (first, second):
            await connection.send(head(small, f"Content-Length: {LIMIT}"), b"{")
        await small.holds(2)
        assert (await small.post(padded(LIMIT - 2)))[0] == 202


async def test_a_chunked_body_counts_as_it_arrives(small: Site) -> None:
    chunk = b"1\r\nx\r\n"
    async with wire(small) as connection:
        await connection.send(head(small, "Transfer-Encoding: chunked"), chunk * 1000)
        await small.holds(1000)
        await connection.send(b"100000\r\n" + bytes(LIMIT) + b"\r\n")
        assert (await connection.answer())[0] == 503


@pytest.mark.parametrize("framing", [f"Content-Length: {LIMIT}", "Transfer-Encoding: chunked"])
async def test_a_broken_connection_no_longer_holds_anything(small: Site, framing: str) -> None:
    async with wire(small) as connection:
        await connection.send(head(small, framing), b"1000\r\n" + bytes(4096))
        await until(lambda: small.bodies.held >= 4096)
    await small.holds(0)


async def test_nothing_is_held_after_all_answers(small: Site) -> None:
    await small.post(padded(PART))
    await small.post(padded(PART), {"X-Hub-Signature-256": WRONG})
    await small.post(b"no JSON")
    assert small.bodies.held == 0
