"""A page and its JSON twin: two routes that answer from one function, so that they never disagree."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, TypeVar

from aiohttp import web
from procrastinate.exceptions import ConnectorException
from pydantic import BaseModel, ConfigDict, ValidationError
from pydantic_core import ErrorDetails, PydanticSerializationError

from bot.core.errors import TryAgain
from bot.core.page_paths import PAGES_OF_A_REPOSITORY
from bot.web.csv_answers import FORMAT, MOST_CSV_ROWS, csv_answer, in_format, wants_csv
from bot.web.csv_tables import CsvTable
from bot.web.openapi import Operation, Parameter, ResponseSchema, problem
from bot.web.page_cache import RenderedPage, answer_key, is_anonymous
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
"""What every address of the pages may answer instead of what it shows."""


class NoQuery(BaseModel):
    """The query of a page without parameters."""

    model_config = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True)
class PageRequest:
    """What a page is asked for: `repository` is `owner/name`, empty on a page of none; `at` is the time now.

    `as_csv`: the rows are wanted as a table of their own, up to `MOST_CSV_ROWS`, instead of one page of them.
    `pages.viewers` says who sent the `request`.
    """

    repository: str
    path: Mapping[str, str]
    query: Any
    pages: Pages
    at: float
    request: web.Request = field(repr=False)
    as_csv: bool = False

    def most_rows(self, of_page: int) -> int:
        """Return how many rows are wanted, if a page has so many."""
        return MOST_CSV_ROWS if self.as_csv else of_page


LoadPage = Callable[[PageRequest], Awaitable[BaseModel]]
"""Returns what a page shows. Raises LookupError where there is nothing, `Problem`, or `TryAgain`.

It reads the store of results through `PageRequest.pages.run`, never on the event loop.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page. `path` and `api_path` hold the same parts in braces; `query` describes the filters in the address.

    The template gets `page`, which is what `load` returned, `query`, and `repository`.
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
    """Whether this page makes the route at `api_path`; False where another feature has it."""
    others_twin_has_csv: bool = False
    """Whether the route of that other feature takes `format=csv`."""
    table: Callable[[Any], CsvTable] | None = None
    """Makes a table of what `load` returned; then the JSON twin takes `format=csv` too."""
    most_csv_rows: int = MOST_CSV_ROWS
    content: Callable[[PageRequest], Awaitable[object]] | None = None
    """Returns, at little cost, what the content depends on besides the address, with a `repr` that tells it apart.

    It may raise as `load` does, and returns None for a page that is made each time, as without this function.
    """

    @property
    def of_repository(self) -> bool:
        """Whether it is a page of a repository."""
        return self.path.startswith(PAGES_OF_A_REPOSITORY)

    def operations(self) -> list[Operation]:
        """Return its routes."""
        parameters = [*(PARAMETERS if self.of_repository else ()), *self.parts]
        html = ResponseSchema("The page", media_type="text/html")
        said = ResponseSchema("What the page shows", self.model)
        shown = Operation(
            "GET", self.path, self.summary, self._answer_page, {200: html, **ERRORS}, parameters, self.query
        )
        if not self.has_own_twin:
            return [shown]
        formats = [in_format(self.most_csv_rows)] if self.table else []
        return [
            shown,
            Operation(
                "GET",
                self.api_path,
                f"{self.summary} (JSON)",
                self._answer_json,
                {200: said, **ERRORS},
                [*parameters, *formats],
                self.query,
                public=not self.of_repository,
            ),
        ]

    async def _answer_page(self, request: web.Request) -> web.Response:
        asked = self._asked(request)

        async def make() -> RenderedPage:
            context = {
                "page": await loaded(self.load, asked),
                "query": asked.query,
                "repository": asked.repository,
                "api": self.api_path.format(**_halves(asked.repository), **asked.path) + _query_string(request),
                "has_csv": self.table is not None or self.others_twin_has_csv,
            }
            return await asked.pages.render(request, self.template, context)

        return await asked.pages.cached(request, await self._key(request, asked, HTML), make, HTML)

    async def _answer_json(self, request: web.Request) -> web.Response:
        asked = self._asked(request, formats=self.table is not None)
        if asked.as_csv and self.table is not None:
            table, found = self.table, await loaded(self.load, asked)
            return await asked.pages.run(lambda: csv_answer(self.api_path, table(found)))

        async def make() -> RenderedPage:
            shown = await loaded(self.load, asked)
            return await asked.pages.run(lambda: compressed_page(_json(shown)))

        return await asked.pages.cached(request, await self._key(request, asked, JSON), make, JSON)

    async def _key(self, request: web.Request, asked: PageRequest, kind: str) -> bytes | None:
        """Return the key under which an answer is stored; None where it is not to be stored."""
        if self.content is None or not is_anonymous(request):
            return None
        content = await loaded(self.content, asked)
        return None if content is None else answer_key(request, kind, content)

    def _asked(self, request: web.Request, *, formats: bool = False) -> PageRequest:
        pages = request.app[PAGES]
        pages.admit(request)
        path = dict(request.match_info)
        repository = repository_of(request) if self.of_repository else ""
        parts = {name: text for name, text in path.items() if name not in ("owner", "repo")}
        query = read_query(self.query, request, [FORMAT] if formats else [])
        return PageRequest(repository, parts, query, pages, time.time(), request, formats and wants_csv(request))


async def loaded(load: Callable[[PageRequest], Awaitable[Loaded]], asked: PageRequest) -> Loaded:
    """Return what an address shows. Raises `Problem` 404 where there is nothing, and 503 to ask again later."""
    try:
        return await load(asked)
    except TryAgain as error:
        seconds = str(max(RETRY_SECONDS, round(error.retry_in or 0)))
        raise _unavailable(seconds) from error
    except ConnectorException as error:
        raise _unavailable(str(RETRY_SECONDS)) from error
    except LookupError as error:
        if isinstance(error, KeyError | IndexError):  # a bug, not an answer
            raise
        raise Problem(HTTPStatus.NOT_FOUND, NO_PAGE) from None


def read_query(model: type[BaseModel], request: web.Request, besides: Sequence[str] = ()) -> BaseModel:
    """Read the query of an address. Raises `Problem` 400 for a parameter that is unknown, repeated or malformed.

    Parameters `besides` those of the model are known too, and left out.
    """
    known = [*(info.alias or name for name, info in model.model_fields.items()), *besides]
    for name in request.query:
        if name not in known:
            detail = UNKNOWN_QUERY.format(name=name[:40], known=", ".join(known) or "none")
            raise Problem(HTTPStatus.BAD_REQUEST, detail)
        if len(request.query.getall(name)) > 1:
            raise Problem(HTTPStatus.BAD_REQUEST, REPEATED_QUERY.format(name=name))
    # An empty field of a form is one that was left out.
    given = {name: text for name, text in request.query.items() if text and name not in besides}
    try:
        return model.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        raise Problem(HTTPStatus.BAD_REQUEST, _fault(model, str(first["loc"][0]), given, first)) from None


def _fault(model: type[BaseModel], name: str, given: Mapping[str, str], error: ErrorDetails) -> str:
    """Say which parameter is wrong, and what it stands for."""
    described = next((info for own, info in model.model_fields.items() if name in (own, info.alias)), None)
    meaning = (described and described.description) or "see the API's description."
    if name not in given:
        return MISSING_QUERY.format(name=name, meaning=meaning)
    why = WRONG_FORM if error["type"] == "string_pattern_mismatch" else error["msg"]
    return BAD_QUERY.format(name=name, given=given[name][:LONGEST_SHOWN], why=why, meaning=meaning)


def _json(shown: BaseModel) -> bytes:
    try:
        return shown.model_dump_json().encode()
    except PydanticSerializationError:  # a lone surrogate, which JSON can escape
        return json.dumps(shown.model_dump(mode="json"), separators=(",", ":")).encode()


def _unavailable(seconds: str) -> Problem:
    return Problem(HTTPStatus.SERVICE_UNAVAILABLE, DATABASE_UNAVAILABLE, headers={"Retry-After": seconds})


def _halves(repository: str) -> dict[str, str]:
    owner, _, repo = repository.partition("/")
    return {"owner": owner, "repo": repo}


def _query_string(request: web.Request) -> str:
    return f"?{request.query_string}" if request.query_string else ""
