"""A page and its JSON twin: two routes that answer from one function, so their content is always the same."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar

from aiohttp import web
from nightjar_formats.terminal import quoted_text
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError

from bot.core import page_paths
from bot.core.errors import TryAgain
from bot.core.page_paths import PAGES_OF_A_REPOSITORY
from bot.engine.sql.errors import DatabaseFailure
from bot.web.csv_answers import FORMAT, MOST_CSV_ROWS, csv_answer, in_format, wants_csv
from bot.web.csv_tables import CsvTable
from bot.web.openapi import Operation, Parameter, ResponseSchema, problem
from bot.web.page_cache import RenderedPage, answer_key
from bot.web.pages import HTML, JSON, PAGES, RETRY_SECONDS, Pages, compressed_page
from bot.web.problems import Problem
from bot.web.repositories import PARAMETERS, repository_of
from bot.web.texts import (
    BAD_QUERY,
    DATABASE_UNAVAILABLE,
    MISSING_QUERY,
    NO_PAGE,
    REPEATED_QUERY,
    UNKNOWN_QUERY,
    WRONG_FORM,
)

LONGEST_SHOWN = 40
"""Characters of a wrong parameter that its problem repeats."""


Loaded = TypeVar("Loaded")
ERRORS = {
    400: problem("A parameter is unknown or invalid"),
    404: problem("There is nothing at this address, or the reader may not see it"),
    429: problem("Too many requests came from this address; Retry-After says when to ask again"),
    503: problem("The database could not be read; Retry-After says when to ask again"),
}
"""The errors that every page and JSON twin may answer."""


class NoQuery(BaseModel, extra="forbid"):
    """The query of a page without parameters."""


@dataclass(frozen=True, slots=True)
class PageRequest:
    """A request for a page. `repository` is `owner/name`, empty on a page of no repository.

    `path` has the parts of the path besides the repository. With `as_csv`, the answer is a table of up to
    `MOST_CSV_ROWS` rows instead of one page of them. `is_page`: the answer is a page, not its JSON twin.
    `pages.viewers` says who sent the `request`.
    """

    repository: str
    path: Mapping[str, str]
    query: Any
    pages: Pages
    request: web.Request = field(repr=False)
    as_csv: bool = False
    is_page: bool = False

    def address(self, path: str) -> str:
        """Return the address of this request below `path`, which has its parts in braces: the same for all spellings.

        The query has its members in the order of the model, without those that have their default.
        """
        owner, _, repo = self.repository.partition("/")
        parts = {name: page_paths.segment(text) for name, text in {**self.path, "owner": owner, "repo": repo}.items()}
        members = self.query.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        return path.format(**parts) + page_paths.query(
            {name: str(value).lower() if isinstance(value, bool) else value for name, value in members.items()}
        )

    def most_rows(self, of_page: int) -> int:
        """Return how many rows to load, if one page has `of_page`."""
        return MOST_CSV_ROWS if self.as_csv else of_page


LoadPage = Callable[[PageRequest], Awaitable[BaseModel]]
"""Returns the content of a page. Raises LookupError if the page does not exist, `Problem`, or `TryAgain`.

It reads the store of results through `PageRequest.pages.run`, never on the event loop.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page. `path` and `api_path` have the same parts in braces; `query` describes the filters in the address.

    The template gets `page` (the result of `load`), `query`, and `repository`.
    """

    path: str
    api_path: str
    summary: str
    template: str
    model: type[BaseModel]
    load: LoadPage
    query: type[BaseModel] = NoQuery
    parts: Sequence[Parameter] = field(default=())
    """The parts of the path besides the repository."""
    has_own_twin: bool = True
    """Whether this page makes the route at `api_path`; False if another feature makes it."""
    others_twin_has_csv: bool = False
    """Whether the route of that other feature accepts `format=csv`."""
    table: Callable[[Any], CsvTable] | None = None
    """Makes a table of the result of `load`; with it, the JSON twin accepts `format=csv`."""
    most_csv_rows: int = MOST_CSV_ROWS
    content: Callable[[PageRequest], Awaitable[object]] | None = None
    """Returns, at little cost, a value on which the content depends besides the address, for the cache's key.

    The `repr` of the value differs if the content does. It names the repositories that the reader may see, if the page
    shows several, but nothing else of a reader: those of one role share the page. None: the page is not cached, as
    without this function. Raises the same errors as `load`.
    """

    @property
    def of_repository(self) -> bool:
        """Whether this is a page of a repository."""
        return self.path.startswith(PAGES_OF_A_REPOSITORY)

    def operations(self) -> list[Operation]:
        """Return the routes of the page and of its JSON twin."""
        parameters = [*(PARAMETERS if self.of_repository else ()), *self.parts]
        html = ResponseSchema("The page", media_type="text/html")
        data = ResponseSchema("What the page shows", self.model)
        page_operation = Operation(
            "GET", self.path, self.summary, self._answer_page, {200: html, **ERRORS}, parameters, self.query
        )
        if not self.has_own_twin:
            return [page_operation]
        formats = [in_format(self.most_csv_rows)] if self.table else []
        return [
            page_operation,
            Operation(
                "GET",
                self.api_path,
                f"{self.summary} (JSON)",
                self._answer_json,
                {200: data, **ERRORS},
                [*parameters, *formats],
                self.query,
                public=not self.of_repository,
            ),
        ]

    async def _answer_page(self, request: web.Request) -> web.Response:
        page_request = self._page_request(request, is_page=True)
        key = await self._key(page_request, self.path, HTML)
        is_shared = key is not None

        async def make() -> RenderedPage:
            address = page_request.address(self.path)
            context = {
                "address": address,
                "page": await loaded(self.load, page_request),
                "query": page_request.query,
                "repository": page_request.repository,
                "api": page_request.address(self.api_path),
                "has_csv": self.table is not None or self.others_twin_has_csv,
            }
            return await page_request.pages.render(request, self.template, context, address, is_shared=is_shared)

        return await page_request.pages.cached(request, key, make, HTML)

    async def _answer_json(self, request: web.Request) -> web.Response:
        page_request = self._page_request(request, formats=self.table is not None)
        if page_request.as_csv and self.table is not None:
            table, content = self.table, await loaded(self.load, page_request)
            return await page_request.pages.run(lambda: csv_answer(self.api_path, table(content)))

        async def make() -> RenderedPage:
            content = await loaded(self.load, page_request)
            return await page_request.pages.run(lambda: compressed_page(_json(content)))

        return await page_request.pages.cached(request, await self._key(page_request, self.api_path, JSON), make, JSON)

    async def _key(self, page_request: PageRequest, path: str, kind: str) -> bytes | None:
        """Return the key under which an answer is cached; None for an answer that is not cached."""
        pages, request = page_request.pages, page_request.request
        if self.content is None:
            return None
        role = None
        if not await pages.is_anonymous(request):
            if not await pages.is_signed_in(request):
                return None
            role = (await pages.viewers.role(request, page_request.repository)).name
        content = await loaded(self.content, page_request)
        if content is None or (role is not None and not await pages.is_signed_in(request)):
            return None  # GitHub may have ended the session meanwhile
        return answer_key(page_request.address(path), kind, (role, content))

    def _page_request(self, request: web.Request, *, formats: bool = False, is_page: bool = False) -> PageRequest:
        pages = request.app[PAGES]
        pages.admit(request)
        path = dict(request.match_info)
        repository = pages.canonical_name(repository_of(request)) if self.of_repository else ""
        parts = {name: text for name, text in path.items() if name not in ("owner", "repo")}
        query = read_query(self.query, request, [FORMAT] if formats else [])
        return PageRequest(repository, parts, query, pages, request, formats and wants_csv(request), is_page)


async def loaded(load: Callable[[PageRequest], Awaitable[Loaded]], page_request: PageRequest) -> Loaded:
    """Return the content of a page. Raises `Problem`: 404 if the page does not exist, 503 if it cannot be read now."""
    try:
        return await load(page_request)
    except TryAgain as error:
        raise unavailable(error) from error
    except DatabaseFailure as error:
        raise _unavailable(str(RETRY_SECONDS)) from error
    except LookupError as error:
        if isinstance(error, KeyError | IndexError):  # a bug, not an answer
            raise
        raise Problem(HTTPStatus.NOT_FOUND, NO_PAGE) from None


def read_query(model: type[BaseModel], request: web.Request, more_names: Sequence[str] = ()) -> BaseModel:
    """Read the query of an address. Raises `Problem` 400 for a parameter that is unknown, repeated or malformed.

    Parameters in `more_names` are allowed too; they are not in the result.
    """
    allowed_names = [*(info.alias or name for name, info in model.model_fields.items()), *more_names]
    for name in request.query:
        if name not in allowed_names:
            detail = UNKNOWN_QUERY.format(name=name[:40], known=", ".join(allowed_names) or "none")
            raise Problem(HTTPStatus.BAD_REQUEST, detail)
        if len(request.query.getall(name)) > 1:
            raise Problem(HTTPStatus.BAD_REQUEST, REPEATED_QUERY.format(name=name))
    # Browsers send an empty field of a form as an empty text.
    texts_by_name = {name: text for name, text in request.query.items() if text and name not in more_names}
    try:
        return model.model_validate(texts_by_name)
    except ValidationError as error:
        first = error.errors()[0]
        raise Problem(HTTPStatus.BAD_REQUEST, _fault(model, str(first["loc"][0]), texts_by_name, first)) from None


def _fault(model: type[BaseModel], name: str, texts_by_name: Mapping[str, str], error: ErrorDetails) -> str:
    """Return a text that names the wrong parameter, its value, and its meaning."""
    fields = model.model_fields.items()
    field_info = next((info for field_name, info in fields if name in (field_name, info.alias)), None)
    meaning = (field_info and field_info.description) or "see the API's description."
    if name not in texts_by_name:
        return MISSING_QUERY.format(name=name, meaning=meaning)
    reason = WRONG_FORM if error["type"] == "string_pattern_mismatch" else error["msg"]
    return BAD_QUERY.format(
        name=name, given=quoted_text(texts_by_name[name][:LONGEST_SHOWN]), why=reason, meaning=meaning
    )


def _json(content: BaseModel) -> bytes:
    try:
        return content.model_dump_json().encode()
    except PydanticSerializationError:  # a lone surrogate, which JSON can escape
        return json.dumps(content.model_dump(mode="json"), separators=(",", ":")).encode()


def unavailable(error: TryAgain) -> Problem:
    """Return the problem for a reader who has to come back later."""
    return _unavailable(str(max(RETRY_SECONDS, round(error.retry_in or 0))))


def _unavailable(seconds: str) -> Problem:
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, DATABASE_UNAVAILABLE, headers={"Retry-After": seconds})
