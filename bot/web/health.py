"""Liveness, readiness and metrics, for the operators' programs."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import suppress

from aiohttp import web
from pydantic import BaseModel

from bot.core.health import HealthCheck, health_of
from bot.core.metrics import Metrics
from bot.core.single_flight import SingleFlight
from bot.engine.sql.errors import DatabaseFailure
from bot.web.openapi import Operation, ResponseSchema
from bot.web.pages import ListPublic

PAUSE_FACTOR = 9
"""How long the pause after reading the gauges is, as a multiple of the time that reading took."""
OK, NOT_READY = "ok", "not ready"


class HealthAnswer(BaseModel):
    """The health of the process. `reason` says why it is not ready, `warnings` what does not keep it from working."""

    status: str
    reason: str = ""
    warnings: dict[str, str] = {}


class SparingRefresh:
    """Read gauges once for all simultaneous requests, and spend at most a tenth of the time: anybody may request them.

    `clock` is in seconds from any starting point.
    """

    def __init__(
        self,
        refresh: Callable[[], Awaitable[None]],
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._refresh = refresh
        self._clock = clock
        self._sleep = sleep
        self._not_before = clock()
        self._flights: SingleFlight[None, None] = SingleFlight()

    async def __call__(self) -> None:
        """Return when the gauges have been read."""
        await self._flights.do(None, self._once)

    async def _once(self) -> None:
        if (pause := self._not_before - self._clock()) > 0:
            await self._sleep(pause)
        began = self._clock()
        try:
            await self._refresh()
        finally:
            ended = self._clock()
            self._not_before = ended + PAUSE_FACTOR * (ended - began)


def operations(checks: Sequence[HealthCheck]) -> list[Operation]:
    """Return `/healthz`, which says that the process lives, and `/readyz`, which runs the checks."""

    async def healthz(_: web.Request) -> web.Response:
        return _answer(200, HealthAnswer(status=OK))

    async def readyz(_: web.Request) -> web.Response:
        health = health_of(checks)
        warnings = dict(health.warnings)
        if health.failures:
            return _answer(503, HealthAnswer(status=NOT_READY, reason=health.reason, warnings=warnings))
        return _answer(200, HealthAnswer(status=OK, warnings=warnings))

    return [
        Operation(
            "GET",
            "/healthz",
            "Whether the process lives",
            healthz,
            {200: ResponseSchema("The process answers", HealthAnswer)},
        ),
        Operation(
            "GET",
            "/readyz",
            "Whether the process can take work and do it",
            readyz,
            {
                200: ResponseSchema("The process is ready", HealthAnswer),
                503: ResponseSchema("The process is not ready; the body says why", HealthAnswer),
            },
        ),
    ]


REVEALING_LABELS = frozenset({"queue", "lab"})
"""Labels that may reveal something about a repository."""


class PublicPart:
    """The metrics that strangers may read: none that names a private repository.

    A queue's address names an account, and perhaps a repository; a lab may work for a private repository alone. So
    strangers see metrics with these labels only if all repositories are public.
    """

    def __init__(self, repositories: Collection[str], list_public: ListPublic) -> None:
        self._repositories = repositories
        self._list_public = list_public
        self._public: frozenset[str] = frozenset()

    async def refresh(self) -> None:
        """Read which repositories are public. One counts as private if the database does not answer."""
        # Empty until the answers arrive: a public repository may have become private.
        self._public = frozenset()
        with suppress(DatabaseFailure):
            self._public = frozenset(name.lower() for name in (await self._list_public()).names)

    def shows(self, labels: Mapping[str, str]) -> bool:
        """Return whether strangers may read a series with these labels."""
        if "repository" in labels:
            return labels["repository"].lower() in self._public
        return REVEALING_LABELS.isdisjoint(labels) or len(self._public) == len(self._repositories)


def metrics_operation(
    checks: Sequence[HealthCheck],
    refresh: Callable[[], Awaitable[None]],
    metrics: Metrics,
    public_part: PublicPart | None = None,
) -> Operation:
    """Return the route of the metrics, or of the public ones.

    Before each answer, `refresh` reads the queue's gauges from the database.
    """

    async def refresh_all() -> None:
        await refresh()
        if public_part is not None:
            await public_part.refresh()

    sparing = SparingRefresh(refresh_all)

    async def exposition(request: web.Request) -> web.Response:
        await sparing()
        metrics.health([check.name for check in checks], health_of(checks))
        text, content_type = metrics.exposition(
            request.headers.get("Accept", ""), public_part.shows if public_part else None
        )
        return web.Response(body=text, headers={"Content-Type": content_type})

    return Operation(
        "GET",
        "/metrics",
        "Measurements in Prometheus' text format",
        exposition,
        {200: ResponseSchema("The measurements", media_type="text/plain")},
    )


def _answer(status: int, health: HealthAnswer) -> web.Response:
    return web.Response(
        status=status,
        body=health.model_dump_json().encode(),
        content_type="application/json",
        headers={"Cache-Control": "no-store"},
    )
