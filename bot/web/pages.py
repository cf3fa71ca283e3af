"""Pages for people: templates, the headers of every page, compression, and conditional requests.

Data is read and pages are rendered in a few separate threads, so that pages never use the threads of webhooks. Every
text in a template is escaped; pages load our own files only, and have no inline scripts or styles.
"""

from __future__ import annotations

import asyncio
import gzip
import hashlib
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from http import HTTPStatus
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import aiohttp_jinja2
import jinja2
from aiohttp import hdrs, web
from markupsafe import escape
from sqlalchemy.exc import OperationalError

from bot.core.page_paths import PATHS, REPLACED
from bot.engine.sql.errors import DatabaseFailure
from bot.github.repositories.visibility import PublicRepositories
from bot.web import page_filters
from bot.web.assets import Assets, accepts_gzip
from bot.web.page_cache import PageCache, RenderedPage
from bot.web.problems import SHOW_PROBLEM, Problem
from bot.web.rate_limit import RateLimit
from bot.web.sign_in.viewers import Viewers, keep_private
from bot.web.texts import DATABASE_UNAVAILABLE, NO_PAGE, NOTHING_IN, TOO_MANY_PAGES, TOO_MANY_REQUESTS

TEMPLATES = Path(__file__).parent / "templates"
THREADS = 4
MOST_WAITING = 64
"""Pages that are rendered or wait for a thread; more are refused, because readers would wait too long."""
RETRY_SECONDS = 5
SMALL = 1_000
"""Pages of at most this many bytes are not compressed."""
LEVEL = 6
PLACE_BYTES = 16
HTML, JSON = "text/html", "application/json"
VARY = "Accept-Encoding, Cookie"

HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
REVALIDATED = "no-cache"
"""Browsers ask each time; if nothing has changed, the answer is an empty 304."""
NOT_STORED = "no-store"
ADMITTED = web.RequestKey("admitted", bool)
READABLE = web.RequestKey("readable", str)
"""The repository of a page, once it is known that the reader may see it."""
BY_TOKEN = web.RequestKey("by_token", bool)
"""Whether the sender has a valid token for the repository of the request."""

IsPublic = Callable[[str], Awaitable[bool]]
ListPublic = Callable[[], Awaitable[PublicRepositories]]

P = ParamSpec("P")
Result = TypeVar("Result")


class Pages:
    """Makes the pages of an application; `folders` hold the templates of features.

    `template_variables` are in all templates: `version`, and `github`, the address of GitHub's own pages.
    `public_url` returns the address of these pages for links from elsewhere, empty if app.yaml has none.
    `is_public` says whether strangers may see a repository, and `list_public` which ones they may see, in the order of
    app.yaml; both raise DatabaseFailure while the database is unavailable. `viewers` says who is signed in.
    `canonical_name` returns a repository's name as app.yaml has it, whatever letter case a reader uses.
    """

    def __init__(
        self,
        template_variables: Mapping[str, str],
        limit: RateLimit,
        is_public: IsPublic,
        list_public: ListPublic,
        folders: Sequence[Path] = (),
        viewers: Viewers | None = None,
        public_url: Callable[[], str] = str,
        canonical_name: Callable[[str], str] = str,
    ) -> None:
        self.is_public = is_public
        self.list_public = list_public
        self.viewers = viewers or Viewers()
        self.assets = Assets()
        self._limit = limit
        self.canonical_name = canonical_name
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="pages")
        # Quick look-ups, which every request needs, must not wait for pages that are being rendered.
        self._look_ups = ThreadPoolExecutor(1, thread_name_prefix="page-look-ups")
        self._cache = PageCache()
        self._waiting = 0
        # Random, so that no text from outside can contain them.
        self._places = {name: secrets.token_hex(PLACE_BYTES) for name in ("viewer", "form_token")}
        self._loader = jinja2.FileSystemLoader([TEMPLATES, *folders])
        self._template_variables = template_variables
        self._public_url = public_url

    def join(self, app: web.Application) -> None:
        """Add the templates to an application, and stop the threads when the application ends."""
        environment = aiohttp_jinja2.setup(
            app,
            loader=self._loader,
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        environment.globals.update(
            assets=self.assets.addresses, public_url=self._public_url, **PATHS, **self._template_variables
        )
        environment.filters.update(page_filters.FILTERS)
        app[PAGES] = self
        app[SHOW_PROBLEM] = _show_problem
        app.on_cleanup.append(self._close)

    async def _close(self, _: web.Application) -> None:
        for threads in (self._threads, self._look_ups):
            threads.shutdown(wait=False, cancel_futures=True)

    async def is_signed_in(self, request: web.Request) -> bool:
        """Return whether somebody is signed in, and no token counts."""
        try:
            return not request.get(BY_TOKEN) and await self.viewers.of(request) is not None
        except DatabaseFailure:
            return False

    async def is_anonymous(self, request: web.Request) -> bool:
        """Return whether nobody is signed in and no token counts, so that all such requests get the same answer.

        A cookie or a token alone makes no difference: anybody can send one, and would have the page rendered anew.
        """
        try:
            return not request.get(BY_TOKEN) and await self.viewers.of(request) is None
        except DatabaseFailure:
            return False  # the page itself says that the database is unavailable

    def admit(self, request: web.Request) -> None:
        """Count a request for a page, once. Raises `Problem` 429 for an address that asks for too many."""
        if request.get(ADMITTED):
            return
        request[ADMITTED] = True
        if seconds := self._limit.wait(request):
            detail = TOO_MANY_REQUESTS.format(seconds=seconds)
            raise Problem(HTTPStatus.TOO_MANY_REQUESTS, detail, headers={"Retry-After": str(seconds)})

    async def run(self, work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
        """Do blocking work in one of the threads for pages. Raises `Problem` 503 if too much work waits."""
        return await self._run_in(self._threads, lambda: work(*args, **kwargs))

    async def look_up(self, work: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
        """Do work that takes at most a millisecond in a separate thread. Raises the same as `run`."""
        return await self._run_in(self._look_ups, lambda: work(*args, **kwargs))

    async def _run_in(self, threads: ThreadPoolExecutor, work: Callable[[], Result]) -> Result:
        if self._waiting >= MOST_WAITING:
            raise Problem(503, TOO_MANY_PAGES, headers={"Retry-After": str(RETRY_SECONDS)})
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(threads, work)
        except OperationalError as error:
            raise Problem(503, DATABASE_UNAVAILABLE, headers={"Retry-After": str(RETRY_SECONDS)}) from error
        finally:
            self._waiting -= 1

    async def answer(
        self,
        request: web.Request,
        template: str,
        context: Mapping[str, Any],
        *,
        status: int = 200,
        headers: Mapping[str, str] | None = None,
    ) -> web.Response:
        """Return a page; an empty 304 if the browser has it already. `headers` replace those of other pages."""
        answer = answer_with(request, await self.render(request, template, context), HTML, status=status)
        answer.headers.update(headers or {})
        return answer

    async def render(
        self,
        request: web.Request,
        template: str,
        context: Mapping[str, Any],
        address: str = "",
        *,
        is_shared: bool = False,
    ) -> RenderedPage:
        """Return the bytes of a page. Whoever signs in on it returns to `address`; empty: to that of the request.

        With `is_shared`, it is for all readers of the same role, and has places for a reader's name and form token.
        """
        reader = await self.viewers.context(request, address)
        if is_shared and reader["viewer"]:
            reader = {**reader, **self._places}
        return await self.run(_render, request, template, {**context, **reader})

    async def cached(
        self, request: web.Request, key: bytes | None, make: Callable[[], Awaitable[RenderedPage]], media_type: str
    ) -> web.Response:
        """Return the page that is cached under a key, or make it; without a key, always make it."""
        if key is None:
            return answer_with(request, await make(), media_type)
        if await self.is_signed_in(request):
            page = await self.made_once(key, make)
            reader = await self.viewers.context(request)
            return answer_with(request, await self.run(self._for_reader, page, reader), media_type)
        tag = self._cache.tag(key)
        if tag is not None and _has(request, tag):
            return _unchanged(tag)
        return answer_with(request, await self.made_once(key, make), media_type)

    def _for_reader(self, page: RenderedPage, reader: Mapping[str, Any]) -> RenderedPage:
        """Return a shared page with the name and the form token of a reader. Blocks while it compresses the page."""
        body = page.body
        for name, place in self._places.items():
            body = body.replace(place.encode(), str(escape(reader[name])).encode())
        return page if body == page.body else compressed_page(body)

    async def made_once(self, key: bytes, make: Callable[[], Awaitable[RenderedPage]]) -> RenderedPage:
        """Return what is cached under a key, or make it."""
        return await self._cache.page(key, make)


PAGES: web.AppKey[Pages] = web.AppKey("pages", Pages)


def _render(request: web.Request, template: str, context: dict[str, Any]) -> RenderedPage:
    # The navigation needs only the path; the query of an address is text from outside.
    context.setdefault("path", request.path)
    return compressed_page(aiohttp_jinja2.render_string(template, request, context).encode(errors=REPLACED))


def compressed_page(body: bytes) -> RenderedPage:
    """Return a page of these bytes. Blocks while it compresses them."""
    return rendered(body, gzip.compress(body, LEVEL, mtime=0) if len(body) > SMALL else None)


def rendered(body: bytes, compressed: bytes | None = None) -> RenderedPage:
    """Return these bytes with their tag."""
    return RenderedPage(body, compressed, hashlib.sha256(body).hexdigest()[:32])


def answer_with(request: web.Request, page: RenderedPage, media_type: str, *, status: int = 200) -> web.Response:
    """Return the response that sends a page; an empty 304 if the browser has it already."""
    if status == HTTPStatus.OK and _has(request, page.tag):
        return _unchanged(page.tag)
    headers = _headers(page.tag) if status == HTTPStatus.OK else {**HEADERS, "Vary": VARY, "Cache-Control": NOT_STORED}
    body = page.body
    if page.compressed is not None and accepts_gzip(request):
        body, headers["Content-Encoding"] = page.compressed, "gzip"
    charset = "utf-8" if media_type == HTML else None
    return web.Response(status=status, body=body, content_type=media_type, charset=charset, headers=headers)


def _headers(tag: str) -> dict[str, str]:
    return {**HEADERS, "Vary": VARY, "Cache-Control": REVALIDATED, hdrs.ETAG: f'W/"{tag}"'}


def _has(request: web.Request, tag: str) -> bool:
    return any(etag.value in (tag, "*") for etag in request.if_none_match or ())


def _unchanged(tag: str) -> web.Response:
    return web.Response(status=HTTPStatus.NOT_MODIFIED, headers=_headers(tag))


async def _show_problem(request: web.Request, response: web.Response) -> web.Response:
    """Show browsers a page instead of problem details; programs and the API get the problem details."""
    if not _wants_page(request):
        return keep_private(request, response)
    problem, repository = page_filters.read_problem(response.body), request.get(READABLE, "")
    if response.status == HTTPStatus.NOT_FOUND:
        problem["detail"] = NOTHING_IN.format(repository=repository) if repository else NO_PAGE
    reader = await request.app[PAGES].viewers.context(request)
    rendered = _render(request, "problem.html", {"problem": problem, "repository": repository, **reader})
    page_response = answer_with(request, rendered, HTML, status=response.status)
    for name in ("Retry-After", "Allow"):
        if name in response.headers:
            page_response.headers[name] = response.headers[name]
    return keep_private(request, page_response)


def is_api(request: web.Request) -> bool:
    """Return whether a request is for a program: the JSON twin of a page, or another route of the API."""
    return request.path.startswith("/api/")


def _wants_page(request: web.Request) -> bool:
    return "text/html" in request.headers.get(hdrs.ACCEPT, "") and not is_api(request)
