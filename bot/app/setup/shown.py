"""What all pages of the set-up share: their headers, their files, and how an error is shown."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from aiohttp import web

from bot.app.setup.files import NewFile
from bot.app.setup.gate import SETUP, SetupGate
from bot.web.pages import HEADERS, PAGES
from bot.web.problems import Problem

TEMPLATES = Path(__file__).parent / "templates"
CREATED, INSTALL, LABS = f"{SETUP}/created", f"{SETUP}/install", f"{SETUP}/labs"
START, CHECKS = f"{SETUP}/start", f"{SETUP}/checks"
PROBE = f"{SETUP}/probe"
"""What is asked at the public address; the only page that strangers may open."""
NEVER_STORED = {"Cache-Control": "no-store"}
POLICY = "Content-Security-Policy"
OWN_FORMS = "form-action 'self'"

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True, slots=True)
class SetupFiles:
    """The files that set-up writes, and the gate that decides who may have it write them."""

    gate: SetupGate
    env: NewFile
    config: NewFile


def form_to(origin: str) -> Mapping[str, str]:
    """Return the headers of a page with a form for another site.

    That site is shown where the form is, but nothing else of its address.
    """
    return {
        POLICY: HEADERS[POLICY].replace(OWN_FORMS, f"{OWN_FORMS} {origin}"),
        "Referrer-Policy": "strict-origin-when-cross-origin",
    }


async def show(
    request: web.Request,
    template: str,
    context: Mapping[str, Any],
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
) -> web.Response:
    """Return a page with headers that forbid caches to store it."""
    more = {**NEVER_STORED, **(headers or {})}
    return await request.app[PAGES].answer(request, template, context, status=status, headers=more)


def shown(handler: Handler) -> Handler:
    """Return a handler that shows a `Problem` as a page of the set-up."""

    async def handle(request: web.Request) -> web.StreamResponse:
        try:
            return await handler(request)
        except Problem as problem:
            context = {"title": HTTPStatus(problem.status).phrase, "detail": problem.detail}
            return await show(request, "setup_problem.html", context, status=problem.status, headers=problem.headers)

    return handle


def see_other(path: str) -> web.Response:
    """Return a redirection to another page of the set-up."""
    return web.Response(status=HTTPStatus.SEE_OTHER, headers={**NEVER_STORED, "Location": path})
