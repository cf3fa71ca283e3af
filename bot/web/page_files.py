"""A file about a repository that is made on request: a badge, or a feed."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from http import HTTPStatus

from aiohttp import hdrs, web

from bot.web.openapi import Operation, Parameter, ResponseSchema
from bot.web.page_routes import ERRORS, NoQuery, PageRequest, loaded, read_query
from bot.web.pages import HEADERS, PAGES
from bot.web.repositories import PARAMETERS, repository_of

FOR_ALL = "cross-origin"
"""Other sites may show the file: everybody may read the pages that say the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """A file below the pages of a repository. `load` returns its text, and raises the same errors as `Page.load`.

    Caches may store the file for `seconds`. `parts` are the parts of the path after the repository.
    """

    path: str
    summary: str
    media_type: str
    load: Callable[[PageRequest], Awaitable[str]]
    seconds: int
    parts: Sequence[Parameter] = ()

    def operations(self) -> list[Operation]:
        """Return the file's route."""
        answers = {200: ResponseSchema("The file", media_type=self.media_type), **ERRORS}
        return [Operation("GET", self.path, self.summary, self._answer, answers, [*PARAMETERS, *self.parts])]

    async def _answer(self, request: web.Request) -> web.Response:
        pages = request.app[PAGES]
        pages.admit(request)
        query = read_query(NoQuery, request)
        parts = {name: text for name, text in request.match_info.items() if name not in ("owner", "repo")}
        page_request = PageRequest(repository_of(request), parts, query, pages, request)
        body = (await loaded(self.load, page_request)).encode()
        tag = hashlib.sha256(body).hexdigest()[:32]
        headers = {
            **HEADERS,
            "Cross-Origin-Resource-Policy": FOR_ALL,
            "Cache-Control": f"public, max-age={self.seconds}",
            hdrs.ETAG: f'"{tag}"',
        }
        if any(etag.value in (tag, "*") for etag in request.if_none_match or ()):
            return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=headers)
        return web.Response(body=body, content_type=self.media_type, charset="utf-8", headers=headers)
