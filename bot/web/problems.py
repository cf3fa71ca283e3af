"""Errors of the HTTP surface, as problem details (RFC 9457).

The text of an unexpected exception is never sent: it may hold secrets.
"""

from __future__ import annotations

import http
import json
from collections.abc import Awaitable, Callable, Mapping

import structlog
from aiohttp import hdrs, web

from bot.web.texts import METHOD_NOT_ALLOWED, NOT_FOUND, NUL_IN_ADDRESS, UNEXPECTED_ERROR

PROBLEM_TYPE = "application/problem+json"

NUL = "%00"
"""The encoded NUL. PostgreSQL refuses NUL in every text, so no name in the database contains one."""

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class Problem(Exception):
    """Answer with this status and explanation; raised by routes, turned into a response by `answer_problems`."""

    def __init__(self, status: int, detail: str, *, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(detail)
        self.status = status
        self.detail = detail
        self.headers = dict(headers or {})


def problem_body(status: int, detail: str) -> dict[str, object]:
    """Return the members of a problem document (https://www.rfc-editor.org/rfc/rfc9457#section-3.1)."""
    return {"type": "about:blank", "title": http.HTTPStatus(status).phrase, "status": status, "detail": detail}


def problem_response(status: int, detail: str, headers: Mapping[str, str] | None = None) -> web.Response:
    """Return a problem as a response."""
    return web.Response(
        status=status,
        body=json.dumps(problem_body(status, detail)).encode(),
        content_type=PROBLEM_TYPE,
        headers=headers,
    )


ShowProblem = Callable[[web.Request, web.Response], Awaitable[web.Response]]
SHOW_PROBLEM: web.AppKey[ShowProblem] = web.AppKey("show_problem")
"""How an application with pages shows a problem to a browser."""


@web.middleware
async def answer_problems(request: web.Request, handler: Answer) -> web.StreamResponse:
    """Turn every error of a route into problem details, or into a page for a browser."""
    try:
        if NUL in request.raw_path:
            response = problem_response(http.HTTPStatus.BAD_REQUEST, NUL_IN_ADDRESS)
        else:
            return await handler(request)
    except Problem as problem:
        response = problem_response(problem.status, problem.detail, problem.headers)
    except web.HTTPException as error:
        # To aiohttp, a redirection is an exception as well.
        if error.status < http.HTTPStatus.BAD_REQUEST:
            raise
        moved = await _without_slash(request) if isinstance(error, web.HTTPNotFound) else None
        if moved is not None:
            return moved
        response = _routing_problem(request, error)
    except Exception:
        log.exception("request failed", method=request.method, path=request.path)
        response = problem_response(http.HTTPStatus.INTERNAL_SERVER_ERROR, UNEXPECTED_ERROR)
    show = request.app.get(SHOW_PROBLEM)
    return response if show is None else await show(request, response)


async def _without_slash(request: web.Request) -> web.Response | None:
    """Return a redirection to the address without slashes at its end, if there is a route; else None."""
    if request.method not in (hdrs.METH_GET, hdrs.METH_HEAD):
        return None
    # Two slashes at the beginning would make another host of the first part of the path.
    path = "/" + request.rel_url.raw_path.strip("/")
    if path == request.rel_url.raw_path:
        return None
    address = request.rel_url.with_path(path, encoded=True)
    match = await request.app.router.resolve(request.clone(rel_url=address))
    if match.http_exception is not None:
        return None
    query = f"?{request.rel_url.raw_query_string}" if request.rel_url.raw_query_string else ""
    return web.Response(status=http.HTTPStatus.PERMANENT_REDIRECT, headers={"Location": path + query})


def _routing_problem(request: web.Request, error: web.HTTPException) -> web.Response:
    """Explain an error that the router or aiohttp itself raised."""
    headers = {}
    detail = error.reason
    if isinstance(error, web.HTTPMethodNotAllowed):
        allowed = ", ".join(sorted(error.allowed_methods))
        headers["Allow"] = allowed
        detail = METHOD_NOT_ALLOWED.format(method=request.method, allowed=allowed)
    elif isinstance(error, web.HTTPNotFound):
        detail = NOT_FOUND
    return problem_response(error.status, detail, headers)
