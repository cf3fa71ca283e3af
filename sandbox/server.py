"""The HTTP server: takes each API request from the socket to its route, and returns the answer."""

from __future__ import annotations

import base64
import binascii
import hashlib
import json
import logging
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from email.utils import format_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

from aiohttp import web
from multidict import CIMultiDict

from sandbox import artifact_store, graphql, openapi, page, sign_in
from sandbox.errors import BAD_CREDENTIALS, REQUIRES_AUTHENTICATION, ApiError, not_accessible
from sandbox.faults import Fault, When
from sandbox.graphql_people import answer_person
from sandbox.journal import Request, TokenKind, Violation
from sandbox.model.apps import App, InstallationToken
from sandbox.rate import Window
from sandbox.routes import all_routes
from sandbox.routing import ApiResponse, Call, Route

if TYPE_CHECKING:
    from sandbox.state import GitHubState

logger = logging.getLogger(__name__)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
PERSON = "ghu_"
"""The beginning of user access tokens."""
BODY_LIMIT = 32 * 2**20
ENTERPRISE = "/api/v3"
"""The path of the API on GitHub Enterprise Server; here the API has both paths."""
CONVERSIONS = "/app-manifests/{code}/conversions"
NOT_BUILT = "GitHub has this operation but the sandbox does not"


class Server:
    """Listens on 127.0.0.1 and answers API requests and pages."""

    def __init__(self, github: GitHubState) -> None:
        self._github = github

    @asynccontextmanager
    async def running(self, port: int) -> AsyncIterator[None]:
        """Serve while the block runs, on a free port if `port` is 0."""
        application = web.Application(client_max_size=BODY_LIMIT)
        application[_SERVER] = self
        for resource in _api():
            application.router.register_resource(resource)
        for prefix in ("", ENTERPRISE):
            application.router.add_post(prefix + CONVERSIONS, self._conversion)
        for path in ("/graphql", "/api/graphql"):
            application.router.add_post(path, self._graphql)
        page.add_routes(application, self._github, self._unknown)
        artifact_store.add_routes(application, self._github)
        sign_in.add_routes(application, self._github)
        application.router.add_route("*", "/{rest:.*}", self._unknown)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", port)
        await site.start()
        self._github.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            yield
        finally:
            self._github.faults.clear()
            await runner.cleanup()

    async def answer(self, request: web.Request, route: Route) -> web.StreamResponse:
        """Execute one operation of the API."""
        return await self._exchange(request, route.template, lambda raw: self._answer(request, route, raw))

    async def _graphql(self, request: web.Request) -> web.StreamResponse:
        def answer(raw: bytes) -> ApiResponse:
            if (secret := _secret(request)).startswith(PERSON):
                return answer_person(self._github, self._github.sign_ins.find(secret), _json(raw) or {})
            _, token = self._caller(request)
            if token is None:
                raise ApiError(401, REQUIRES_AUTHENTICATION)
            return graphql.answer(self._github, token, _json(raw) or {})

        return await self._exchange(request, "/graphql", answer)

    async def _conversion(self, request: web.Request) -> web.StreamResponse:
        """Exchange the code of a manifest. It needs no credentials, because the code is one."""

        def answer(_: bytes) -> ApiResponse:
            return ApiResponse(self._github.manifests.convert(request.match_info["code"]), 201)

        return await self._exchange(request, CONVERSIONS, answer)

    async def _unknown(self, request: web.Request) -> web.StreamResponse:
        if "text/html" in request.headers.get("Accept", ""):
            return web.Response(status=404, text="There is no such page here.")

        def answer(raw: bytes) -> ApiResponse:
            exists = any(_fits(template, request.path) for template in openapi.document()["paths"])
            raise ApiError(501 if exists else 404, NOT_BUILT if exists else "Not Found", mistake=True)

        return await self._exchange(request, request.path, answer)

    async def _exchange(
        self, request: web.Request, template: str, answer: Callable[[bytes], ApiResponse]
    ) -> web.StreamResponse:
        """Execute one request, with the fault that applies to it, and record it in the journal."""
        github = self._github
        record = Request(request.method, template, request.path, self._token_kind(request), github.clock.now())
        record.id = uuid.uuid4().hex.upper()
        raw = await request.read()
        github.requests.add(record)
        fault = github.faults.take(request.method, template, request.path)
        answered = await self._meet(fault, request, "before")
        if fault is not None and fault.late and answered is not None:
            github.clock.after(fault.late, lambda: self._carry_out(request, template, lambda: answer(raw)))
        if answered is None:
            answered = self._carry_out(request, template, lambda: answer(raw))
            answered = await self._meet(fault, request, "after") or answered
        github.requests.finish(record, answered.status)
        if answered.status == 0:
            return web.Response(status=500)
        return self._respond(request, record, answered)

    async def _meet(self, fault: Fault | None, request: web.Request, when: When) -> ApiResponse | None:
        """Apply a fault if it is time for it; return the answer that replaces the real one."""
        if fault is None or not await fault.strike(when, request.transport):
            return None
        if fault.status is None or fault.abandoned:
            return ApiResponse(status=0)
        kind = {"Content-Type": "application/json"} if fault.text is not None else {}
        return ApiResponse({"message": fault.message}, fault.status, {**kind, **fault.headers}, fault.text)

    def _carry_out(self, request: web.Request, template: str, answer: Callable[[], ApiResponse]) -> ApiResponse:
        """Return the route's answer or GitHub's error; record violations of the rules."""
        try:
            answered = answer()
        except ApiError as error:
            if error.mistake:
                text = f"{error.status} {error.message} {error.errors or ''}"
                self._violation("request", f"{request.method} {request.path}", text)
            return ApiResponse(error.body(), error.status, error.headers)
        except Exception as error:
            logger.exception("the sandbox failed at %s %s", request.method, request.path)
            self._violation("response", f"{request.method} {request.path}", f"the sandbox failed: {error!r}")
            return ApiResponse({"message": "Server Error"}, 500)
        if answered.text is None and template != "/graphql":
            problem = openapi.response_problem(request.method, template, answered.status, answered.body)
            if problem is not None:
                self._violation("response", f"{request.method} {request.path}", problem)
        return answered

    def _violation(self, kind: Literal["request", "response"], route: str, problem: str) -> None:
        self._github.violations.append(Violation(kind, route, problem))
        self._github.changed()

    def _answer(self, request: web.Request, route: Route, raw: bytes) -> ApiResponse:
        """Check a request against GitHub's description and the caller's permissions, then execute it."""
        person = None
        if route.auth == "person":
            person = self._github.sign_ins.find(_secret(request))
            app, token = person.app, None
        elif route.auth == "client":
            app, token = self._client(request), None
        else:
            app, token = self._caller(request)
        if route.auth == "app" and token is not None:
            raise ApiError(401, "A JSON web token could not be decoded", mistake=True)
        if route.auth == "installation" and token is None:
            raise ApiError(401, "This endpoint requires an installation token, not the App's JWT", mistake=True)
        if token is not None and "{owner}" not in route.template and not _granted(token, route):
            raise not_accessible(route.needs, route.level)
        self._github.rate_limits.spend(_caller_name(app, token))
        method, template = route.method, route.template
        path = openapi.check_path(method, template, request.match_info)
        query = openapi.check_query(method, template, request.query)
        accept = request.headers.get("Accept", "")
        body = _json(raw)
        call = Call(self._github, route, request.url, path, query, body or {}, accept, app, token, person)
        if "{owner}" in template:
            # Callers who may not see the repository get the 404 before any other error about the request.
            _ = call.repository
        openapi.check_body(method, template, body)
        return route.handle(call)

    def _client(self, request: web.Request) -> App:
        """Return the App that authenticates with its client ID and secret."""
        try:
            credentials = base64.b64decode(_secret(request), validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            raise ApiError(401, BAD_CREDENTIALS, mistake=True) from None
        client_id, _, client_secret = credentials.partition(":")
        app = sign_in.client_of(self._github, client_id, client_secret)
        if app is None:
            raise ApiError(401, BAD_CREDENTIALS)
        return app

    def _caller(self, request: web.Request) -> tuple[App, InstallationToken | None]:
        """Return the App that calls and, unless it calls with its JWT, the installation token."""
        if not request.headers.get("User-Agent"):
            raise ApiError(403, "Request forbidden by administrative rules: no User-Agent", mistake=True)
        scheme, _, secret = request.headers.get("Authorization", "").partition(" ")
        if not scheme:
            raise ApiError(401, REQUIRES_AUTHENTICATION, mistake=True)
        if scheme.lower() not in {"bearer", "token"}:
            raise ApiError(401, BAD_CREDENTIALS, mistake=True)
        if secret.startswith("ghs_"):
            token = self._github.tokens.find(secret)
            return token.installation.app, token
        return self._github.tokens.app_of(secret), None

    def _token_kind(self, request: web.Request) -> TokenKind:
        secret = _secret(request)
        if secret.startswith(PERSON):
            return "person"
        return "none" if not secret else "installation" if secret.startswith("ghs_") else "app"

    def _respond(self, request: web.Request, record: Request, answered: ApiResponse) -> web.Response:
        """Return the HTTP response with GitHub's usual headers."""
        headers = CIMultiDict({"X-GitHub-Request-Id": record.id, "X-GitHub-Media-Type": "github.v3; format=json"})
        headers["Date"] = format_datetime(self._github.clock.now(), usegmt=True)
        text = answered.text if answered.text is not None else json.dumps(answered.body)
        if answered.status == 200 and request.method == "GET":
            headers["ETag"] = f'W/"{hashlib.sha256(text.encode()).hexdigest()}"'
        window: Window | None = None
        try:
            if record.token in ("app", "installation") and not request.path.startswith("/applications/"):
                window = self._github.rate_limits.window(_caller_name(*self._caller(request)))
        except ApiError:
            window = None
        if window is not None and headers.get("ETag", "-") == request.headers.get("If-None-Match"):
            # A 304 costs nothing. https://docs.github.com/rest/using-the-rest-api/best-practices-for-using-the-rest-api
            window.used -= 1
            record.status = 304
            headers.update(window.headers)
            if self._github.links_unchanged_pages:
                headers.update({name: value for name, value in answered.headers.items() if name == "Link"})
            return web.Response(status=304, headers=headers)
        headers.update(window.headers if window else {})
        headers.update(answered.headers)
        if answered.status == 204:
            return web.Response(status=204, headers=headers)
        kind = "application/json" if answered.text is None else "application/vnd.github.raw+json"
        kind = headers.popone("Content-Type", kind)
        return web.Response(text=text, status=answered.status, headers=headers, content_type=kind, charset="utf-8")


_SERVER: web.AppKey[Server] = web.AppKey("server")


@cache
def _api() -> Sequence[web.AbstractResource]:
    """Return the operations of the API, made once for all servers: this is the slowest part of a start."""
    router = web.UrlDispatcher()
    for route in sorted(all_routes(), key=lambda route: route.sort_key):
        for prefix in ("", ENTERPRISE):
            router.add_route(route.method, prefix + route.aiohttp_path, _answering(route))
    return list(router.resources())


def _answering(route: Route) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        return await request.app[_SERVER].answer(request, route)

    return handle


def _secret(request: web.Request) -> str:
    return request.headers.get("Authorization", "").partition(" ")[2]


def _caller_name(app: App, token: InstallationToken | None) -> str:
    return f"installation ID {token.installation.id}" if token else f"app ID {app.id}"


def _granted(token: InstallationToken, route: Route) -> bool:
    return not route.needs or any(token.may(permission, route.level) for permission in route.needs)


def _json(raw: bytes) -> dict[str, Any] | None:
    """Return a request's JSON object, or None without a body."""
    if not raw:
        return None
    try:
        body = json.loads(raw)
    except ValueError:
        raise ApiError(400, "Problems parsing JSON", mistake=True) from None
    if not isinstance(body, dict):
        raise ApiError(400, "Body should be a JSON object", mistake=True)
    return body


def _fits(template: str, path: str) -> bool:
    parts, path_parts = template.split("/"), path.split("/")
    return len(parts) == len(path_parts) and all(
        t == g or t.startswith("{") for t, g in zip(parts, path_parts, strict=True)
    )
