"""A GitHub that gives scripted answers and records its requests, over real HTTP."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict, deque
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from tests.patient_loop import advance
from tests.serving import served

TOKEN_PREFIX = "ghs_secret_"
SILENCE = 60.0
"""Seconds: longer than any client waits."""


@dataclass(frozen=True)
class Say:
    """One answer.

    `drop`: the connection breaks after the request arrived; `hang`: no answer ever comes, and `SILENCE` passes at once.
    The answer is sent once `released` is set.
    """

    status: int = 200
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    drop: bool = False
    hang: bool = False
    released: asyncio.Event | None = None


@dataclass(frozen=True)
class ReceivedRequest:
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def bearer(self) -> str:
        return self.headers["authorization"].split()[1]


class ScriptedGitHub:
    def __init__(self) -> None:
        self.requests: list[ReceivedRequest] = []
        self.token_lifetime = timedelta(hours=1)
        self.tokens_made = 0
        self._script: dict[tuple[str, str], deque[Say]] = defaultdict(deque)
        self.url = ""
        self._over = asyncio.Event()

    @asynccontextmanager
    async def serving(self) -> AsyncIterator[None]:
        app = web.Application(client_max_size=2**26)
        app.router.add_route("*", "/{path:.*}", self._answer)
        async with served(app) as self.url:
            try:
                yield
            finally:
                self._over.set()

    def will(self, method: str, path: str, *answers: Say) -> None:
        """Answer the next requests to `path` one after another; the last answer is repeated."""
        self._script[method, path] = deque(answers)

    def requests_for(self, method: str, path: str) -> list[ReceivedRequest]:
        return [request for request in self.requests if (request.method, request.path) == (method, path)]

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        received = ReceivedRequest(
            request.method, request.path, dict(request.query), request.headers.copy(), await request.read()
        )
        self.requests.append(received)
        answers = self._script.get((received.method, received.path))
        if answers is None:
            return self._token() if received.path.endswith("/access_tokens") else web.json_response({}, status=418)
        say = answers.popleft() if len(answers) > 1 else answers[0]
        if say.hang:
            advance(SILENCE)
            await self._over.wait()
        if say.released is not None:
            await say.released.wait()
        if say.drop:
            assert request.transport is not None
            request.transport.abort()
        if say.raw is not None:
            return web.Response(status=say.status, body=say.raw, headers=say.headers)
        if say.body is None:
            return web.Response(status=say.status, headers=say.headers)
        return web.json_response(say.body, status=say.status, headers=say.headers)

    def _token(self) -> web.Response:
        self.tokens_made += 1
        ends = datetime.now(UTC) + self.token_lifetime
        token = f"{TOKEN_PREFIX}{self.tokens_made}"
        return web.json_response({"token": token, "expires_at": ends.isoformat(timespec="seconds")}, status=201)
