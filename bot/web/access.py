"""Who may read about a repository: everybody if it is public; otherwise people with its token or access on GitHub.

`create_app` wraps every route of a repository with `guarded`, by the route's path, so no route can forget it. A
stranger gets the same answer for a private repository as for one that does not exist.

No open route shows deliveries, which contain names of private repositories, titles and comments. `nightjar deliveries`
and `nightjar replay` do, because whoever can run them can read the database anyway, and the pages below `/operate` show
them to operators who have signed in. A route for loopback only would not be safe: behind a reverse proxy on the same
machine, every request comes from loopback. `/healthz`, `/readyz` and `/metrics` show counts, names of events and
handlers, and numbers of installations; errors in `/readyz` name the kind of fault, never an address. The decision API
is open for public repositories, because CI asks without credentials.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Protocol

from aiohttp import hdrs, web

from bot.core.page_paths import PAGES_OF_A_REPOSITORY
from bot.core.patterns import Pattern
from bot.engine.sql.errors import DatabaseFailure
from bot.github.limits.ranks import Rank, ranked
from bot.web.openapi import Operation, problem
from bot.web.pages import BY_TOKEN, PAGES, READABLE, IsPublic
from bot.web.problems import Problem
from bot.web.repositories import RETRY_SECONDS, repository_of
from bot.web.sign_in.operators import Operators, no_operators
from bot.web.sign_in.viewers import Viewers
from bot.web.texts import DATABASE_UNAVAILABLE, INVALID_TOKEN, NO_PAGE, NO_TOKEN

API_OF_A_REPOSITORY = "/api/v1/repos/{owner}/{repo}"
API = "/api/"
OPERATOR_PATHS = ("/operate", "/api/v1/operate")

UNPROTECTED_ROUTE = "{path} is below {api}, but declares neither a repository, nor that it is public or for labs"

_BEARER = Pattern(r"(?i:bearer) +([!-~]{1,500}) *")


class TokenHolder(Protocol):
    """The content of a valid token: its repository, in lower case."""

    @property
    def subject(self) -> str:
        """Return the repository, in lower case."""
        ...


VerifyToken = Callable[[str], Awaitable[TokenHolder | None]]


class ApiAccess:
    """Decide who may read about a repository."""

    def __init__(
        self,
        verify: VerifyToken,
        is_public: IsPublic,
        viewers: Viewers | None = None,
        operators: Operators | None = None,
    ) -> None:
        self._verify = verify
        self._is_public = is_public
        self._viewers = viewers or Viewers()
        self._operators = operators or no_operators(self._viewers)

    def guarded(self, operation: Operation) -> Operation:
        """Return an operation that requires a token if necessary. Raises ValueError if its path does not say."""
        if operation.path == PAGES_OF_A_REPOSITORY or operation.path.startswith(f"{PAGES_OF_A_REPOSITORY}/"):
            return replace(operation, handler=self._for_readers(operation))
        if any(operation.path == path or operation.path.startswith(f"{path}/") for path in OPERATOR_PATHS):
            return replace(operation, handler=self._for_operators(operation))
        if not operation.path.startswith(f"{API_OF_A_REPOSITORY}/"):
            if operation.path.startswith(API) and not (operation.public or operation.for_labs):
                raise ValueError(UNPROTECTED_ROUTE.format(path=operation.path, api=API))
            return operation

        async def handler(request: web.Request) -> web.StreamResponse:
            with ranked(await self._rank(request)):
                return await operation.handler(request)

        refused = problem("The repository is not public, and the request has no valid token for it")
        return replace(operation, handler=handler, answers={**operation.answers, 401: refused}, takes_token=True)

    def _for_operators(self, operation: Operation) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return a handler that answers only operators."""

        async def handler(request: web.Request) -> web.StreamResponse:
            try:
                await self._operators.check(request)
                with ranked(Rank.SWEEP):
                    return await operation.handler(request)
            except DatabaseFailure as error:
                raise Problem(503, DATABASE_UNAVAILABLE, headers={"Retry-After": str(RETRY_SECONDS)}) from error

        return handler

    def _for_readers(self, operation: Operation) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
        """Return a page's handler: everybody sees public repositories, people with access also private ones."""

        async def handler(request: web.Request) -> web.StreamResponse:
            try:
                repository = repository_of(request)
            except Problem:  # no repository can have this name, so there is no such page
                raise Problem(404, NO_PAGE) from None
            try:
                public = await self._is_public(repository)
                if not public and not await self._may_read(request, repository):
                    raise Problem(404, NO_PAGE)
            except DatabaseFailure as error:
                raise Problem(503, DATABASE_UNAVAILABLE, headers={"Retry-After": str(RETRY_SECONDS)}) from error
            request[READABLE] = repository
            # Strangers may use only a small share of the quota. A person who may read a private repository counts like
            # its token.
            with ranked(Rank.ANONYMOUS if public else Rank.SWEEP):
                return await operation.handler(request)

        return handler

    async def _may_read(self, request: web.Request, repository: str) -> bool:
        """Return whether the reader may read a repository on GitHub; the question counts against the page limit."""
        if await self._viewers.of(request) is None:
            return False
        request.app[PAGES].admit(request)
        return await self._viewers.may_read(request, repository)

    async def _rank(self, request: web.Request) -> Rank:
        """Return the rank of requests to GitHub for this request. Raises `Problem`."""
        repository = repository_of(request)
        try:
            return await self._rank_of(request, repository)
        except DatabaseFailure as error:
            raise Problem(503, DATABASE_UNAVAILABLE, headers={"Retry-After": str(RETRY_SECONDS)}) from error

    async def _rank_of(self, request: web.Request, repository: str) -> Rank:
        authorization = request.headers.get("Authorization")
        if authorization is not None:
            bearer = _BEARER.fullmatch(authorization)
            holder = await self._verify(bearer[1]) if bearer else None
            if holder is None:
                raise _unauthorized(INVALID_TOKEN, ', error="invalid_token"')
            if holder.subject == repository.lower():
                request[BY_TOKEN] = True
                return Rank.SWEEP
        if not await self._is_public(repository):
            # A browser's session allows reading only.
            if request.method in (hdrs.METH_GET, hdrs.METH_HEAD) and await self._viewers.of(request) is not None:
                if await self._may_read(request, repository):
                    return Rank.SWEEP
                raise Problem(404, NO_PAGE)
            # Without a token, the answer has no error code: https://www.rfc-editor.org/rfc/rfc6750#section-3.1
            raise _unauthorized(NO_TOKEN)
        return Rank.ANONYMOUS


def _unauthorized(detail: str, error: str = "") -> Problem:
    # https://www.rfc-editor.org/rfc/rfc6750#section-3
    return Problem(401, detail, headers={"WWW-Authenticate": f'Bearer realm="nightjar"{error}'})
