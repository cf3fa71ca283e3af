"""`GET /help`: the commands as a page. Answers to invalid commands link it if `public_url` is set."""

from __future__ import annotations

from functools import lru_cache

from aiohttp import web
from markdown_it import MarkdownIt
from markupsafe import Markup

from bot.web.openapi import Operation, ResponseSchema
from bot.web.pages import PAGES

PATH = "/help"
TEMPLATE = "help.html"


def operation(markdown: str) -> Operation:
    """Return the route that shows a Markdown text, rendered once, with any HTML in it escaped."""
    body = _rendered(markdown)

    async def show(request: web.Request) -> web.Response:
        pages = request.app[PAGES]
        pages.admit(request)
        return await pages.answer(request, TEMPLATE, {"body": body})

    return Operation("GET", PATH, "The commands, as a page", show, {200: ResponseSchema("It", media_type="text/html")})


@lru_cache(maxsize=8)
def _rendered(markdown: str) -> Markup:
    rendered = MarkdownIt("commonmark", {"html": False}).enable("table").render(markdown)
    return Markup(rendered)  # noqa: S704 (our own text; the renderer escapes HTML)
