"""The web application: every route from one table, which its OpenAPI document is made from too."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from aiohttp import web, web_response, web_urldispatcher
from pydantic import BaseModel, ConfigDict

from bot.core.health import HealthCheck
from bot.core.metrics import Metrics
from bot.web import health
from bot.web.access import ApiAccess
from bot.web.api_reference import api_reference
from bot.web.bodies import Bodies, answer_without_the_body
from bot.web.connections import IDLE_SECONDS, Connections, Malformed
from bot.web.help import ListCommands, help_page
from bot.web.login import BegunSignIns, SignInRoutes
from bot.web.openapi import Operation, Parameter, ResponseSchema, document, problem
from bot.web.pages import IsPublic, ListPublic, Pages
from bot.web.problems import answer_problems
from bot.web.rate_limit import RateLimit
from bot.web.sign_in.viewers import Viewers, keep_private
from bot.web.webhook import EVENT_HEADER, GUID_HEADER, SIGNATURE_HEADER, Inbox, Webhook, WhyIgnored, never_ignore

OPENAPI_PATH = "/api/v1/openapi.json"
GRACE_SECONDS = 20.0
"""How long requests in flight may take after a request to stop."""
MOST_HEADERS = 64
"""GitHub sends about 15, and proxies some more."""
LONGEST_LINE = 4096
"""Bytes of a request's first line, and of each header."""
SERVER_NAME = "nightjar"
LINGER_SECONDS = 5.0
"""How long to read the rest of a refused body, so that the client sees the response."""


READ_AHEAD = 64 * 1024
"""Bytes that a connection may buffer before they are read; `Bodies` counts what is read."""


class Taken(BaseModel):
    """A delivery is durable now; "seen before" where its GUID was known."""

    status: str


class Document(BaseModel):
    """An OpenAPI document."""

    model_config = ConfigDict(extra="allow")

    openapi: str


@dataclass(frozen=True, slots=True)
class Parts:
    """The parts of the program that the routes use."""

    inbox: Inbox
    bodies: Bodies
    connections: Connections
    access: ApiAccess
    repositories: Collection[str]
    is_public: IsPublic
    list_public: ListPublic
    """Returns those of `repositories` that are public, in their order."""
    secrets: Sequence[bytes]
    checks: Sequence[HealthCheck]
    refresh: Callable[[], Awaitable[None]]
    routes: Sequence[Operation]
    """The routes of the features."""
    metrics: Metrics
    version: str
    mentions: Sequence[str]
    """The names that address the bot in a text."""
    list_commands: ListCommands
    """What `GET /help` shows."""
    why_ignored: WhyIgnored = never_ignore
    """Says which deliveries get no job."""
    log_ignored: bool = False
    """Whether each ignored delivery gets a line in the log."""
    canonical_name: Callable[[str], str] = str
    """Returns a repository's name as app.yaml has it, whatever letter case a reader uses."""
    viewers: Viewers = field(default_factory=Viewers)
    """Who is signed in; by default nobody can."""
    begun: BegunSignIns | None = None
    """The sign-ins that browsers have begun; None without sign-in."""
    templates: Sequence[Path] = ()
    """The folders of the features' templates."""
    github_url: str = "https://github.com"
    public_url: Callable[[], str] = str
    """Returns the address of the pages for links from elsewhere; empty if app.yaml has none."""
    pages_per_minute: int = 300
    proxies: int = 0
    """Settings of app.yaml below `http`."""
    metrics_here: bool = True
    """Whether `/metrics` is served on the same port."""


STOPPING = web.AppKey("stopping", asyncio.Event)
"""Set when the server is about to stop: routes that let clients wait answer them now."""
CONNECTIONS = web.AppKey("connections", Connections)
"""The open connections, for routes whose bodies take long to arrive."""


def create_app(parts: Parts) -> web.Application:
    """Return the application; raise `ValueError` where `parts.secrets` holds no secret."""
    limit = RateLimit(parts.pages_per_minute, parts.proxies)
    template_variables = {"version": parts.version, "github": parts.github_url}
    pages = Pages(
        template_variables,
        limit,
        parts.is_public,
        parts.list_public,
        parts.templates,
        parts.viewers,
        parts.public_url,
        parts.canonical_name,
    )

    @functools.cache
    def description() -> dict[str, Any]:
        """Return the OpenAPI document. The first request builds it, because it would take a third of the start."""
        return document(operations, parts.version)

    @functools.cache
    def openapi_json() -> bytes:
        return json.dumps(description()).encode()

    async def openapi(_: web.Request) -> web.Response:
        return web.Response(body=openapi_json(), content_type="application/json")

    operations = [
        _webhook(_webhook_of(parts)),
        *health.operations(parts.checks),
        *([_metrics(parts, health.PublicPart(parts.repositories, parts.list_public))] if parts.metrics_here else []),
        *map(_for_viewers, parts.routes),
        *map(_for_viewers, help_page(parts.list_commands, parts.mentions).operations()),
        *map(_for_viewers, SignInRoutes(parts.viewers, parts.begun).operations()),
        *pages.assets.operations(),
        _for_viewers(api_reference(description)),
        Operation("GET", OPENAPI_PATH, "This document", openapi, {200: ResponseSchema("It", Document)}, public=True),
    ]
    operations = [parts.access.guarded(operation) for operation in operations]
    app = _application(operations, parts.connections)
    pages.join(app)
    return app


def _for_viewers(operation: Operation) -> Operation:
    """Return an operation whose answers to people who are signed in are private."""

    async def handler(request: web.Request) -> web.StreamResponse:
        return keep_private(request, await operation.handler(request))

    return replace(operation, handler=handler)


def create_metrics_app(parts: Parts, connections: Connections) -> web.Application:
    """Return the application for a separate port: `/metrics`, and the health of the process."""
    return _application([*health.operations(parts.checks), _metrics(parts)], connections)


def _application(operations: Sequence[Operation], connections: Connections) -> web.Application:
    """Return an application with these operations. Like all of ours, it limits connections and has our error pages."""
    app = web.Application(middlewares=[connections.middleware(), answer_problems])
    app[STOPPING] = asyncio.Event()
    app[CONNECTIONS] = connections
    app.on_shutdown.append(_answer_waiting_clients)
    for operation in operations:
        # HEAD is GET without the content (RFC 9110, 9.3.2).
        for method in ("GET", "HEAD") if operation.method == "GET" else (operation.method,):
            app.router.add_route(method, operation.path, operation.handler, expect_handler=answer_without_the_body)
    return app


async def _answer_waiting_clients(app: web.Application) -> None:
    app[STOPPING].set()


def create_runner(app: web.Application) -> web.AppRunner:
    """Return a runner for the application, which its caller sets up and gives a site to listen on."""
    # aiohttp answers malformed requests without any hook, so replace the server's name where aiohttp reads it.
    setattr(web_response, "SERVER_SOFTWARE", SERVER_NAME)  # noqa: B010 (mypy knows it as private)
    # aiohttp itself makes the routes of unknown addresses, and would request the bodies of their requests.
    setattr(web_urldispatcher, "_default_expect_handler", answer_without_the_body)  # noqa: B010
    return web.AppRunner(
        app,
        access_log=None,
        logger=_http_log(),
        handle_signals=False,
        # A signature covers the bytes that were sent, compressed or not.
        auto_decompress=False,
        keepalive_timeout=IDLE_SECONDS,
        lingering_time=LINGER_SECONDS,
        max_headers=MOST_HEADERS,
        max_line_size=LONGEST_LINE,
        max_field_size=LONGEST_LINE,
        read_bufsize=READ_AHEAD,
        shutdown_timeout=GRACE_SECONDS,
    )


def _http_log() -> logging.Logger:
    """Return the log for aiohttp, to which malformed requests of strangers add at most one line a second."""
    http_log = logging.getLogger("bot.web.http")
    http_log.filters[:] = [Malformed()]
    return http_log


def _metrics(parts: Parts, public_part: health.PublicPart | None = None) -> Operation:
    return health.metrics_operation(parts.checks, parts.refresh, parts.metrics, public_part)


def _webhook_of(parts: Parts) -> Webhook:
    return Webhook(
        parts.inbox,
        parts.bodies,
        parts.secrets,
        parts.metrics,
        parts.mentions,
        parts.why_ignored,
        log_ignored=parts.log_ignored,
    )


def _webhook(webhook: Webhook) -> Operation:
    signature = {"type": "string", "pattern": "^sha256=[0-9a-f]{64}$"}
    return Operation(
        method="POST",
        path="/webhook",
        summary="Accept a delivery from GitHub",
        handler=webhook.answer,
        parameters=[
            Parameter(SIGNATURE_HEADER, "HMAC of the body with the webhook's secret.", signature, "header"),
            Parameter(EVENT_HEADER, "The event.", {"type": "string", "pattern": "^[a-z_]{1,64}$"}, "header"),
            Parameter(GUID_HEADER, "The delivery's GUID.", {"type": "string", "pattern": "^[!-~]{1,64}$"}, "header"),
        ],
        request_body={"type": "object"},
        answers={
            202: ResponseSchema("The delivery is stored", Taken),
            400: problem("Not JSON, or a header is missing"),
            401: problem("The signature is wrong, missing, or SHA-1 only"),
            408: problem("The body did not arrive in time"),
            413: problem("The body is larger than 25 MiB"),
            503: problem(
                "The delivery could not be stored, or too many large bodies are arriving; "
                "Retry-After says when to try again"
            ),
        },
    )
