"""A gate in front of the simulated S3: the bot's requests pass through it and can be counted, held, refused or lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import unquote

import aiohttp
from aiohttp import web
from yarl import URL

from sandbox.bucket import BucketServer
from sandbox.faults import Fault, Faults, When
from tests.bucket import fault as answer_of
from tests.serving import served

PASSED_ON = ("content-type", "etag", "content-length", "last-modified", "x-amzn-requestid")
LARGEST = 1 << 30


class Gate:
    """A proxy of S3 and SQS; `requests` are (method, decoded path with query), in order."""

    def __init__(self, server: BucketServer) -> None:
        self.server = server
        self.faults = Faults()
        self.requests: list[tuple[str, str]] = []
        self.url = ""

    @property
    def environment(self) -> dict[str, str]:
        """Return the variables with which boto3 uses the gate."""
        return {**self.server.environment, "AWS_ENDPOINT_URL": self.url}

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Forward a request, unless a fault applies to it."""
        path = unquote(request.path_qs)
        self.requests.append((request.method, path))
        fault = self.faults.take(request.method, path, path)
        if (fault_response := await _meet(fault, request, "before")) is not None:
            return fault_response
        body = await request.read()
        headers = {name: value for name, value in request.headers.items() if name.lower() not in ("host", "expect")}
        url = f"{self.server.url}{request.raw_path}"
        async with (
            aiohttp.ClientSession(auto_decompress=False, skip_auto_headers=("Accept-Encoding",)) as session,
            session.request(request.method, URL(url, encoded=True), data=body, headers=headers) as answer,
        ):
            content = await answer.read()
            headers_back = {name: value for name, value in answer.headers.items() if name.lower() in PASSED_ON}
        if (fault_response := await _meet(fault, request, "after")) is not None:
            return fault_response
        return web.Response(status=answer.status, headers=headers_back, body=content)


async def _meet(fault: Fault | None, request: web.Request, side: When) -> web.Response | None:
    if fault is None or not await fault.strike(side, request.transport):
        return None
    if fault.status is None or fault.abandoned:
        return web.Response(status=500)
    answer = answer_of(fault.status, fault.message)
    # The body may still be arriving: the next request on this connection would read the rest of it.
    answer.force_close()
    return answer


@asynccontextmanager
async def gate(server: BucketServer) -> AsyncIterator[Gate]:
    """Open a gate in front of a simulated S3."""
    opened = Gate(server)
    app = web.Application(client_max_size=LARGEST)
    app.router.add_route("*", "/{path:.*}", opened.answer)
    async with served(app) as opened.url:
        try:
            yield opened
        finally:
            opened.faults.clear()
