"""What operators' programs ask: does it live, is it ready, how is it doing."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from aiohttp import web
from pydantic import BaseModel

from bot.health import HealthCheck, health_of
from bot.metrics import Metrics
from bot.web.openapi import Answer, Operation

OK, NOT_READY = "ok", "not ready"


class HealthAnswer(BaseModel):
    """The health of the process. `reason` says why it is not ready, `warnings` what does not keep it from working."""

    status: str
    reason: str = ""
    warnings: dict[str, str] = {}


def operations(
    checks: Sequence[HealthCheck], refresh: Callable[[], Awaitable[None]], metrics: Metrics
) -> list[Operation]:
    """Return the routes; `refresh` reads the queue's gauges from the database before they are shown."""

    async def healthz(_: web.Request) -> web.Response:
        return _answer(200, HealthAnswer(status=OK))

    async def readyz(_: web.Request) -> web.Response:
        health = health_of(checks)
        warnings = dict(health.warnings)
        if health.failures:
            return _answer(503, HealthAnswer(status=NOT_READY, reason=health.reason, warnings=warnings))
        return _answer(200, HealthAnswer(status=OK, warnings=warnings))

    async def exposition(request: web.Request) -> web.Response:
        await refresh()
        metrics.health([check.name for check in checks], health_of(checks))
        text, content_type = metrics.exposition(request.headers.get("Accept", ""))
        return web.Response(body=text, headers={"Content-Type": content_type})

    return [
        Operation("GET", "/healthz", "Whether the process lives", healthz, {200: Answer("It does", HealthAnswer)}),
        Operation(
            "GET",
            "/readyz",
            "Whether the process can take work and do it",
            readyz,
            {200: Answer("It can", HealthAnswer), 503: Answer("It cannot, and why", HealthAnswer)},
        ),
        Operation(
            "GET",
            "/metrics",
            "Measurements in Prometheus' text format",
            exposition,
            {200: Answer("The measurements", media_type="text/plain")},
        ),
    ]


def _answer(status: int, health: HealthAnswer) -> web.Response:
    return web.Response(
        status=status,
        body=health.model_dump_json().encode(),
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )
