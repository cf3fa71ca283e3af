"""A file about a repository that is made on request: a badge, a feed, or a picture."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import hdrs, web
from pydantic import BaseModel

from bot.web.openapi import Operation, Parameter, ResponseSchema
from bot.web.page_cache import RenderedPage, answer_key
from bot.web.page_routes import ERRORS, NoQuery, PageRequest, loaded, read_query
from bot.web.pages import HEADERS, PAGES, rendered
from bot.web.repositories import PARAMETERS, repository_of

FOR_ALL = "cross-origin"
"""Other sites may show the file: everybody may read the pages that say the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file below the pages of a repository. `load` returns it, and raises the same errors as `Page.load`.

    Caches may store the file for `seconds`. `parts` are the parts of the path after the repository. `content` is as in
    `Page`: with it, the server caches the file for all readers of the repository.
    """

    path: str
    summary: str
    media_type: str
    load: Callable[[PageRequest], Awaitable[str | bytes]]
    seconds: int
    parts: Sequence[Parameter] = ()
    query: type[BaseModel] = NoQuery
    """The parameters of the query, as in `Page`."""
    content: Callable[[PageRequest], Awaitable[object]] | None = None

    def operations(self) -> list[Operation]:
        """Return the file's route."""
        answers = {200: ResponseSchema("The file", media_type=self.media_type), **ERRORS}
        return [
            Operation("GET", self.path, self.summary, self._answer, answers, [*PARAMETERS, *self.parts], self.query)
        ]

    async def _answer(self, request: web.Request) -> web.Response:
        pages = request.app[PAGES]
        pages.admit(request)
        query = read_query(self.query, request)
        parts = {name: text for name, text in request.match_info.items() if name not in ("owner", "repo")}
        page_request = PageRequest(pages.canonical_name(repository_of(request)), parts, query, pages, request)

        async def make() -> RenderedPage:
            content = await loaded(self.load, page_request)
            return rendered(content.encode() if isinstance(content, str) else content)

        key = None
        if self.content is not None:
            content = await loaded(self.content, page_request)
            key = answer_key(page_request.address(self.path), self.media_type, content)
        page = await (make() if key is None else pages.made_once(key, make))
        headers = {
            **HEADERS,
            "Cross-Origin-Resource-Policy": FOR_ALL,
            "Cache-Control": f"public, max-age={self.seconds}",
            hdrs.ETAG: f'"{page.tag}"',
        }
        if any(etag.value in (page.tag, "*") for etag in request.if_none_match or ()):
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        charset = None if self.media_type == "image/png" else "utf-8"
        return web.Response(body=page.body, content_type=self.media_type, charset=charset, headers=headers)
