"""What operators' programs ask: does it live, is it ready, how is it doing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aiohttp import web
from pydantic import BaseModel

from bot.metrics import Metrics
from bot.web.openapi import Answer, Operation

Ready = Callable[[], str | None]
"""Returns None when work can be taken and done, else why not."""


class Health(BaseModel):
    """How the process is; `reason` says why it is not ready."""

    status: str
    reason: str = ""


def operations(ready: Ready, refresh: Callable[[], Awaitable[None]], metrics: Metrics) -> list[Operation]:
    """Return the routes; `refresh` reads the queue's gauges from the database before they are shown."""

    async def healthz(_: web.Request) -> web.Response:
        return _answer(200, Health(status="ok"))

    async def readyz(_: web.Request) -> web.Response:
        reason = ready()
        return _answer(503, Health(status="not ready", reason=reason)) if reason else _answer(200, Health(status="ok"))

    async def exposition(request: web.Request) -> web.Response:
        await refresh()
        text, content_type = metrics.exposition(request.headers.get("Accept", ""))
        return web.Response(body=text, headers={"Content-Type": content_type})

    return [
        Operation("GET", "/healthz", "Whether the process lives", healthz, {200: Answer("It does", Health)}),
        Operation(
            "GET",
            "/readyz",
            "Whether the database answers and the worker runs",
            readyz,
            {200: Answer("Both", Health), 503: Answer("Why not", Health)},
        ),
        Operation(
            "GET",
            "/metrics",
            "Measurements in Prometheus' text format",
            exposition,
            {200: Answer("The measurements", media_type="text/plain")},
        ),
    ]


def _answer(status: int, health: Health) -> web.Response:
    return web.Response(
        status=status,
        body=health.model_dump_json().encode(),
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )
