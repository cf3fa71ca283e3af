"""No part of a request makes a route fail: each parameter of each route gets hostile text."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.bucket import World
from tests.conversations.town import town
from tests.visitor import SIGN_IN, Visitor, may_sign_in

CONFIG = """
operators: ["@hubot"]
http: {pages_per_minute: 100000}
repositories:
  octocat/compiler:
    nightly:
    results:
      bucket: %s
      labs: {example-lab: {targets: {hexagon-v73: {tier: 2}}}}
"""
GOOD = {
    "owner": b"octocat",
    "repo": b"compiler",
    "lab": b"example-lab",
    "target": b"hexagon-v73",
    "sha": b"a" * 40,
    "run_id": b"1",
    "n": b"1",
    "id": b"0123456789ab",
    "guid": b"guid",
    "name": b"style.css",
    "job": b"job",
    "upload": b"a" * 32,
}
ODD = (
    b"\xff",
    b"%ED%A0%80",
    b"%00",
    b"%2e%2e%2fetc",
    b"9" * 400,
    b"-1",
    b"9223372036854775808",
    b"2026-13-45",
    b"0000-00-00",
    b"%D9%A2%D9%A0%D9%A2%D9%A6-%D9%A1%D9%A1-%D9%A2%D9%A5",  # a date in Arabic digits
    b"%D9%A1",
    b"%C2%B2",
    b"1e999",
    b"NaN",
    b"example-lab/%FF",
    b"%25s%7B0%7D",
)
"""Bytes that stand in an address in place of a value."""
ODD_HEADERS = (
    b"Cookie: __Host-nightjar-session=\xff; a=\xfe;;;==",
    b'Cookie: x="' + b"\\" * 3000,
    b"Authorization: Bearer \xff",
    b"Authorization: Bearer " + b"A." * 1800,
    b"Authorization: Bearer eyJraWQiOltbW1t.e30.AAAA",
    b'If-None-Match: W/"\xff',
    b"If-None-Match: " + b'"a",' * 900,
    b"Accept-Encoding: gzip;q=\xff",
    b"X-Forwarded-For: \xff, 999.1.1.1",
    b"Content-Type: application/json; charset=\xff",
    b"X-GitHub-Delivery: \xff",
    b"Origin: \xff",
)
TOGETHER = 20


def _requests(paths: dict[str, Any], cookies: bytes) -> Iterator[bytes]:
    for path, item in paths.items():
        names = re.findall(r"{(\w+)}", path)
        for method, described in item.items():
            queries = [parameter["name"] for parameter in described.get("parameters", []) if parameter["in"] == "query"]
            for odd in ODD:
                yield from (_head(method, _filled(path, {**GOOD, name: odd}), cookies) for name in names)
                yield from (
                    _head(method, _filled(path, GOOD) + f"?{name}=".encode() + odd, cookies) for name in queries
                )
            yield from (_head(method, _filled(path, GOOD), header) for header in ODD_HEADERS)


def _filled(path: str, values: dict[str, bytes]) -> bytes:
    return re.sub(rb"{(\w+)}", lambda name: values[name[1].decode()], path.encode())


def _head(method: str, target: bytes, header: bytes) -> bytes:
    first = b"%s %s HTTP/1.1" % (method.upper().encode(), target)
    more_lines = (b"Host: 127.0.0.1", b"Accept: text/html", b"Content-Length: 0", b"Connection: close")
    return b"\r\n".join([first, *more_lines, header, b"", b""])


@pytest.mark.exhaustive("every seventh")
@pytest.mark.parametrize("step", [7, 1], ids=["every seventh", "every"])
async def test_no_route_fails_whatever_an_address_or_a_header_contains(
    tmp_path: Path, aws_world: World, caplog: pytest.LogCaptureFixture, step: int
) -> None:
    config = CONFIG % aws_world.name
    async with (
        town(f"sqlite:///{tmp_path}/nightjar.db", config=config, environment=SIGN_IN) as dashboard_town,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as client,
    ):
        may_sign_in(dashboard_town)
        await dashboard_town.started()
        visitor = Visitor(dashboard_town.url, client)
        await visitor.sign_in("hubot")  # so that the operators' pages are reached too
        cookies = "; ".join(f"{name}={value}" for name, value in visitor.cookies.items())
        paths = json.loads((await visitor.get("/api/v1/openapi.json")).text)["paths"]
        port, at_once = int(dashboard_town.url.rpartition(":")[2]), asyncio.Semaphore(TOGETHER)

        async def status(request: bytes) -> bytes:
            async with at_once:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(request)
                first = await reader.readline()
                writer.close()
            return first.split(b" ")[1]

        # A parameter has sixteen requests in a row, or takes turns with others of its path: each gets some of them.
        requests = list(_requests(paths, f"Cookie: {cookies}".encode()))[::step]
        statuses = await asyncio.gather(*map(status, requests))
    failed = [request[:120] for request, status in zip(requests, statuses, strict=True) if status == b"500"]
    assert not failed
    assert Counter(statuses)[b"200"] * step > 100, "the routes were not reached"
    assert not [line.getMessage()[:300] for line in caplog.records if line.levelno >= logging.ERROR]
