"""The client that handlers and effects use: gidgethub's, with retries, limits and caching in `_request`."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from http import HTTPStatus
from typing import Any, BinaryIO
from urllib.parse import urlsplit

import aiohttp
import structlog
from gidgethub import RedirectionException, sansio
from gidgethub.abc import ITERABLE_KEY, JSON_CONTENT_TYPE, JSON_UTF_8_CHARSET, GitHubAPI
from nightjar_formats.strict_json import read_json
from pydantic_core import from_json  # noqa: TID251  # GitHub writes no 1e999, and `read_json` takes longer
from uritemplate import URITemplate
from uritemplate.variable import VariableValue

from bot.core.events import answered
from bot.core.patterns import Pattern
from bot.engine.writes import Writes
from bot.github.auth import Credentials, SharedReading
from bot.github.errors import (
    NOT_JSON,
    ODD_ANSWER,
    Answer,
    AppRefused,
    NotAsked,
    NotSelected,
    RateLimited,
    TooManyPages,
    Unavailable,
    UnclearAnswer,
    Vanished,
    WriteRefused,
    error_of,
    is_suspended,
    message_of,
    problem_of,
)
from bot.github.limits.governor import SHORT_WAIT, Governor, Timing
from bot.github.limits.ledger import HEAD_WRITE, READ_POINTS, WRITE_POINTS, Demand, resource_of
from bot.github.limits.ranks import CURRENT_RANK, Rank, ranked
from bot.github.transport.breaker import Breakers
from bot.github.transport.cache import AnswerCache, revalidated
from bot.github.transport.clock import GitHubClock
from bot.github.transport.download import fetch
from bot.github.transport.graphql import data_of, graphql_url, is_mutation, refuses_data
from bot.github.transport.observer import RequestObserver, Unobserved
from bot.github.transport.pages import MAX_PAGES, items_of, may_have_grown, next_page, with_page_size
from bot.github.transport.seen import SeenAddresses

USER_AGENT = "nightjar"  # GitHub refuses requests without one
API_VERSION = "2022-11-28"  # github.com and every supported Enterprise Server know it
TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=5)  # seconds; GitHub itself gives up after 10
TRIES = 3
BACKOFF = 0.2  # seconds before the second try, doubled and with jitter before each further one
DOUBTS = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)
"""Statuses that an old token may cause: GitHub did nothing, so the request may be sent again with a new token."""
NOTHING_DECLARED = "this client is read-only; to write, an effect must declare the permissions that it needs"
REPOSITORY = "/repos/{+repo}"
NOT_SHOWN = "installation {installation}: GitHub no longer shows the repository to the App"
NO_REDIRECTION = "the answer is not a redirect to the file"
NOT_SENT = "this client has its own credentials and headers: {names} would not be sent"

# An absolute URL is not a template: as the label of a metric, each would be a series of its own.
ABSOLUTE = "(address from a payload)"

# Requests that must not be sent twice although their method is idempotent: a repeat adds the annotations of a check run
# again, or is refused because the first one worked. So the effect gets the error, and checks before it retries.
_NOT_REPEATABLE = Pattern(r"/check-runs/\d+$|/pulls/\d+/(merge|update-branch)$|/contents/")

# These POSTs may be sent twice: GitHub stores one reaction of a kind and one label of a name, and nobody sees a tree or
# a commit that no branch has.
_REPEATABLE_POST = Pattern(r"/reactions$|/issues/\d+/labels$|/git/(trees|commits)$")
_REPEATABLE_MUTATION = Pattern(r"\b(addReaction|removeReaction)\b")

log = structlog.get_logger(__name__)

UrlVars = Mapping[str, VariableValue] | None
_parsed = lru_cache(maxsize=512)(URITemplate)


def expanded(template: str, url_vars: UrlVars = None) -> str:
    """Return a URI template with its variables filled in: a path that begins with a slash, or an absolute URL.

    https://www.rfc-editor.org/rfc/rfc6570
    """
    if "://" in template:  # from a payload, so it is used once
        return URITemplate(template).expand(dict(url_vars or {}))
    return f"/{_parsed(template).expand(dict(url_vars or {})).removeprefix('/')}"


def _content(answer: Answer) -> Any:
    """Return the decoded body; None if it is empty or has no content type, its bytes if that is not JSON's.

    Raises ValueError if it claims to be JSON, but is not.
    """
    content_type = answer.headers.get("content-type", "").partition(";")[0].strip().lower()
    if not content_type or not answer.body:
        return None
    if content_type != "application/json":
        return answer.body
    try:
        return from_json(answer.body, allow_inf_nan=False, cache_strings="keys")
    except ValueError:
        return read_json(answer.body)  # it may have a lone surrogate, which JSON allows


@dataclass(frozen=True, slots=True)
class ApiCall:
    """Facts about a request that the client's `_request` needs and cannot read from its method and URL."""

    route: str
    write: bool
    repeatable: bool
    write_key: str = ""
    """The key of a write that must not be sent twice; empty for every other request."""
    follow: bool = True
    """Whether a GET follows GitHub's redirects."""
    is_page: bool = False
    """Whether a GET reads a page of a list whose other pages are read as well."""

    @classmethod
    def get(cls, url: str) -> ApiCall:
        """Describe a GET of the template `url`."""
        route = ABSOLUTE if "://" in url else url.split("?")[0].split("{?")[0].split("{&")[0]
        return cls(route, write=False, repeatable=True)

    @classmethod
    def rest(cls, method: str, url: str, uri: str) -> ApiCall:
        """Describe a REST request to the template `url`, whose expanded form is `uri`."""
        call = cls.get(url)
        if method == "GET":
            return call
        path = urlsplit(uri).path
        pattern = _REPEATABLE_POST if method == "POST" else _NOT_REPEATABLE
        # For a POST, the pattern lists the repeatable paths; for any other method, those that are not repeatable.
        repeatable = (pattern.search(path) is not None) == (method == "POST")
        return cls(call.route, write=True, repeatable=repeatable, write_key="" if repeatable else f"{method} {path}")

    @classmethod
    def of_graphql(cls, query: str, variables: Mapping[str, Any]) -> ApiCall:
        """Describe a GraphQL document: a mutation counts as a POST, a query as a GET."""
        write = is_mutation(query)
        repeatable = not write or _REPEATABLE_MUTATION.search(query) is not None
        document = json.dumps([query, variables], sort_keys=True).encode()
        # 64 bits of the digest are enough for the few mutations of one job.
        write_key = "" if repeatable else f"POST /graphql {hashlib.sha256(document).hexdigest()[:16]}"
        return cls("/graphql", write=write, repeatable=repeatable, write_key=write_key)


CALL: ContextVar[ApiCall] = ContextVar("call")
"""The request that the running code is making."""


@contextmanager
def calling(call: ApiCall) -> Iterator[None]:
    """Describe the requests made inside the block."""
    token = CALL.set(call)
    try:
        yield
    finally:
        CALL.reset(token)


@dataclass(frozen=True, slots=True)
class Wire:
    """The parts that all clients of a process share. The session must not take proxies from the environment."""

    session: aiohttp.ClientSession
    api_url: str
    governor: Governor
    cache: AnswerCache = field(default_factory=AnswerCache)
    observer: RequestObserver = field(default_factory=Unobserved)
    timing: Timing = field(default_factory=Timing)
    clock: GitHubClock = field(default_factory=lambda: GitHubClock(time.time))
    refusals: dict[type[Credentials], str] = field(default_factory=dict)
    """Why GitHub refuses our credentials at the moment, by kind; empty while it accepts them."""
    timeout: aiohttp.ClientTimeout = TIMEOUT
    breakers: Breakers = field(default_factory=lambda: Breakers(time.monotonic))
    seen: SeenAddresses = field(default_factory=lambda: SeenAddresses(time.monotonic))


class GitHub(GitHubAPI):
    """A client for one repository of one installation, or for the App itself.

    It reads with `credentials` and writes with `writing`. Without `writing` it refuses to write: a caller has only the
    permissions that it named. Where `shared` covers an address, it reads with that instead.

    `getitem`, `getiter`, `post`, `patch`, `put`, `delete` take a URL template with `url_vars`. The template is also the
    label of the metric, so never paste values into the URL. Every call may raise `RateLimited`, `Unavailable` or
    `AppRefused` (all are `TryAgain`), and gidgethub's `BadRequest` family for GitHub's refusals; `bot.github.errors`
    has the predicates. The client has already retried requests that are safe to repeat. A POST is not: check whether
    it took effect before you send it again.
    """

    def __init__(
        self,
        wire: Wire,
        credentials: Credentials,
        *,
        writing: Credentials | None = None,
        writes: Writes | None = None,
        shared: SharedReading | None = None,
    ) -> None:
        super().__init__(USER_AGENT, base_url=wire.api_url)
        self._wire = wire
        self._reading = credentials
        self._writing = writing
        self._writes = writes or Writes()
        self._shared = shared

    def __repr__(self) -> str:
        return f"GitHub({self._reading.name}{'' if self._writing else ', read only'})"

    async def sleep(self, seconds: float) -> None:
        """Wait; gidgethub calls this method."""
        await self._wire.timing.sleep(seconds)

    def now(self) -> float:
        """Return the time by GitHub's clock, in seconds since 1970."""
        return self._wire.clock.now()

    async def getiter(  # type: ignore[override]  # without jwt and oauth_token: a client has its own credentials
        self,
        url: str,
        url_vars: UrlVars = None,
        *,
        iterable_key: str | None = ITERABLE_KEY,
        max_pages: int = MAX_PAGES,
    ) -> AsyncGenerator[Any, None]:
        """Yield every item of a list, over all its pages, a hundred at a time.

        A wrapped list, such as `{"total_count": 2, "check_runs": [...]}`, is recognized, or named by `iterable_key`.
        Raises `TooManyPages` after `max_pages` instead of ending early.
        """
        call = replace(ApiCall.get(url), is_page=True)
        page: str | None = with_page_size(self._address(expanded(url, url_vars)))
        pages = 0
        while page:
            if pages == max_pages:
                raise TooManyPages(f"GET {call.route}: more than {max_pages} pages")
            items, page = await self._page(call, page, iterable_key)
            pages += 1
            for item in items:
                yield answered(item)

    async def getpage(self, url: str, url_vars: UrlVars = None) -> tuple[list[Any], str | None]:
        """Return one page of a list, a hundred items, and the address of the next page, None after the last page."""
        address = with_page_size(self._address(expanded(url, url_vars)))
        items, following = await self._page(replace(ApiCall.get(url), is_page=True), address, ITERABLE_KEY)
        return [answered(item) for item in items], following

    async def _page(self, call: ApiCall, address: str, iterable_key: str | None) -> tuple[list[Any], str | None]:
        with calling(call):
            data, answer = await self._decoded("GET", address)
        return items_of(data, iterable_key, call.route), next_page(answer.headers, call.route)

    async def graphql(self, query: str, *, endpoint: str | None = None, **variables: Any) -> Any:
        """Return the `data` of a GraphQL query or mutation; a mutation is treated as a POST, a query as a GET.

        Raises `QueryError` if a 200 reports errors, and the errors of the other methods.
        """
        headers = sansio.create_headers(self.requester, accept=JSON_UTF_8_CHARSET)
        headers["content-type"] = JSON_UTF_8_CHARSET
        body = json.dumps({"query": query, "variables": variables}).encode()
        with calling(ApiCall.of_graphql(query, variables)):
            url = endpoint or graphql_url(self._wire.api_url)
            self._refuse_undeclared("POST /graphql")
            async with self._once():
                authorization = await self._credentials.authorization()
                response = await self._post_query(url, headers, body)
                # GraphQL refuses with a 200, so `_attempt` cannot notice that a new token is needed.
                if refuses_data(response) and self._credentials.rejected(authorization, HTTPStatus.FORBIDDEN):
                    response = await self._post_query(url, headers, body)
        return answered(data_of(response))

    async def _post_query(self, url: str, headers: Mapping[str, str], body: bytes) -> Any:
        response = Answer(*await self._request("POST", url, headers, body)).json()
        if not isinstance(response, Mapping) or not {"data", "errors"} & response.keys():
            raise Unavailable(f"POST /graphql: {ODD_ANSWER}", answering=True)
        return response

    async def post_repeatable(self, url: str, url_vars: UrlVars = None, *, data: Any) -> Any:
        """POST a request that may be sent twice without visible effect, such as for a token; retry it like a GET."""
        with calling(ApiCall.get(url)):
            content, _ = await self._decoded("POST", self._address(expanded(url, url_vars)), data)
        return content

    async def download(self, url: str, url_vars: UrlVars, file: BinaryIO, *, limit: int) -> None:
        """Download the file to which GitHub redirects a GET into `file`, `limit` bytes at most.

        Raises `TooLong`, and the errors of every other call.
        """
        headers = sansio.create_headers(self.requester)
        with calling(replace(ApiCall.get(url), follow=False)):
            try:
                await self._request("GET", self._address(expanded(url, url_vars)), headers)
            except RedirectionException as redirection:
                if redirection.status_code != HTTPStatus.FOUND:  # the repository has moved, not the file
                    raise
                location = redirection.headers.get("location", "")
            else:
                raise Unavailable(f"GET {CALL.get().route}: {NO_REDIRECTION}")
        await fetch(self._wire.session, location, file, limit=limit)

    def _address(self, uri: str) -> str:
        return f"{self.base_url.removesuffix('/')}{uri}" if uri.startswith("/") else uri

    async def _make_request(  # type: ignore[override]  # the others are refused
        self, method: str, url: str, url_vars: UrlVars, data: Any, accept: str, **others: Any
    ) -> tuple[Any, None, int]:
        if given := [name for name, value in others.items() if value not in (None, JSON_CONTENT_TYPE)]:
            raise TypeError(NOT_SENT.format(names=", ".join(given)))
        # Read the URL template here: `_request` gets only the expanded URL.
        uri = expanded(url, url_vars)
        with calling(ApiCall.rest(method, url, uri)):
            content, answer = await self._decoded(method, self._address(uri), data, accept)
        return content, None, answer.status

    async def _decoded(
        self, method: str, address: str, data: Any = b"", accept: str = sansio.accept_format()
    ) -> tuple[Any, Answer]:
        """Send `data` as JSON, nothing for `b""`; return the answer, decoded and as it came.

        gidgethub's own method expands the address again, and reads the content type as the header of an e-mail.
        """
        headers, body = sansio.create_headers(self.requester, accept=accept), b""
        if data != b"":
            headers["content-type"], body = JSON_UTF_8_CHARSET, json.dumps(data).encode()
        headers["content-length"] = str(len(body))
        async with self._once():
            answer = Answer(*await self._request(method, address, headers, body))
            try:
                content = _content(answer)
            except ValueError:
                problem = NOT_JSON
            else:
                # An empty body is normal for a 202 or 204. In a 200 it means that GitHub, or a proxy, is broken:
                # docs/decisions/distrusted-github-responses.md
                if isinstance(content, Mapping | list) or (content is None and answer.status != HTTPStatus.OK):
                    return answered(content), answer
                problem = ODD_ANSWER
            # A proxy between us and GitHub may have sent its own page.
            raise Unavailable(f"{method} {CALL.get().route}: {problem}", answering=True)

    @asynccontextmanager
    async def _once(self) -> AsyncIterator[None]:
        """Send the requests of the block; send a write that must not be sent twice only if `Writes` allows it."""
        call = CALL.get()
        if not call.write_key or self._writing is None:
            yield
            return
        async with self._writes.once(call.write_key, self._wire.clock.now):
            try:
                yield
            except Unavailable as error:
                if not error.sent:
                    raise
                problem = error
            else:
                return
            raise UnclearAnswer.of(problem)

    async def _request(
        self, method: str, url: str, headers: Mapping[str, str], body: bytes = b""
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request, and retry it if that is safe; return a successful answer, raise for every other.

        https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api
        """
        call = CALL.get()
        request = f"{method} {call.route}"
        self._refuse_undeclared(request)
        self._refuse_strange(url, request)
        versioned_headers = {**headers, "x-github-api-version": API_VERSION}
        for attempt in range(1, TRIES + 1):
            try:
                answer = await self._attempt(method, url, versioned_headers, body)
            except Unavailable as error:
                # If GitHub answers other requests, the job gives up sooner: docs/decisions/retries-during-outages.md
                error.answering = not self._wire.breakers.of(self._credentials.name).is_open
                if (
                    isinstance(error, NotAsked | Vanished)
                    or not call.repeatable
                    or attempt == TRIES
                    or (error.retry_in or 0) > SHORT_WAIT
                ):
                    raise
                log.info("github request is tried again", request=request, attempt=attempt, reason=str(error))
                await self.sleep(error.retry_in or BACKOFF * 2 ** (attempt - 1) * (0.5 + self._wire.timing.jitter()))
            except RateLimited as limit:
                # A rate-limited request had no effect, not even a POST. The governor waits as long as GitHub asked.
                if attempt == TRIES or limit.retry_in > SHORT_WAIT:
                    raise
            else:
                return answer.status, answer.headers, answer.body
        raise AssertionError("the last attempt returns or raises")

    @property
    def _credentials(self) -> Credentials:
        return self._writing if self._writing is not None and CALL.get().write else self._reading

    async def _attempt(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        shared = self._shared if method == "GET" and self._shared is not None and self._shared.covers(url) else None
        credentials = shared.credentials if shared is not None else self._credentials
        request = f"{method} {CALL.get().route}"
        authorization = await credentials.authorization()
        answer = await self._exchange(method, url, {**headers, "authorization": authorization}, body)
        if answer.status in DOUBTS and credentials.rejected(authorization, answer.status):
            authorization = await credentials.authorization()
            answer = await self._exchange(method, url, {**headers, "authorization": authorization}, body)
        if answer.status == HTTPStatus.UNAUTHORIZED:
            raise self._refused(message_of(error_of(answer, request)))
        self._wire.refusals.pop(type(credentials), None)
        self._check_vanished(method, url, answer.status)
        if shared is not None and answer.status == HTTPStatus.NOT_FOUND:
            await self._confirm_selected(shared, url, headers)
        if 200 <= answer.status < 300:
            return answer
        error = error_of(answer, request)
        raise (credentials.paused() if is_suspended(error) else None) or error

    async def _confirm_selected(self, shared: SharedReading, url: str, headers: Mapping[str, str]) -> None:
        """Raise `NotSelected` if a 404 means that the installation does not include the repository.

        GitHub makes a token for the whole installation all the same, and answers 404 for whatever is in the repository.
        """
        if shared.confirmed.get(shared.repository):
            return
        not_selected = NotSelected(NOT_SHOWN.format(installation=shared.credentials.name), shared.repository)
        if url == shared.url:
            raise not_selected
        # One read in ten minutes for all clients, so strangers need not pay for it from their small budget.
        with calling(ApiCall.get(REPOSITORY)), ranked(max(CURRENT_RANK.get(), Rank.SWEEP)):
            as_json = {**headers, "accept": sansio.accept_format()}
            repository = (await self._attempt("GET", shared.url, as_json, b"")).json()
        if not isinstance(repository, Mapping) or repository.get("id") != shared.repository:
            raise not_selected
        shared.confirmed[shared.repository] = True

    def _check_vanished(self, method: str, url: str, status: int) -> None:
        """Raise `Vanished` for a 404 on an object that existed a moment ago."""
        seen, name, path = self._wire.seen, self._credentials.name, urlsplit(url).path
        if status == HTTPStatus.NOT_FOUND and seen.doubts(name, path):
            raise Vanished(f"{method} {CALL.get().route}")
        if 200 <= status < 300:
            seen.note_removal(name, path) if method == "DELETE" else seen.note_object(name, path)

    def _refused(self, reason: str) -> AppRefused:
        refusal_text, kind = self._credentials.refusal.format(reason=reason), type(self._credentials)
        if kind not in self._wire.refusals:
            log.error("github refuses our credentials", credentials=self._credentials.name, reason=refusal_text)
        self._wire.refusals[kind] = refusal_text
        return AppRefused(refusal_text)

    async def _exchange(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        wire, call, name = self._wire, CALL.get(), self._credentials.name
        resource = resource_of(url)
        # A GraphQL query is a POST, but counts as a read; a mutation counts as a write:
        # https://docs.github.com/en/graphql/overview/rate-limits-and-query-limits-for-the-graphql-api
        reads = method == "GET" or (resource == "graphql" and not call.write)
        points = READ_POINTS if reads else WRITE_POINTS
        demand = Demand(resource, points, call.write, CURRENT_RANK.get(), HEAD_WRITE.get())
        # The answer depends on the credentials, and one URL may have several media types.
        key = (name, url, headers["accept"])
        cached = wire.cache.get(key) if method == "GET" else None
        # A 304 costs no quota:
        # https://docs.github.com/en/rest/using-the-rest-api/best-practices-for-using-the-rest-api#use-conditional-requests-if-appropriate
        condition = {"if-none-match": cached.headers["etag"]} if cached is not None else {}
        answer = await self._governed(method, url, {**headers, **condition}, body, demand)
        if cached is not None and answer.status == HTTPStatus.NOT_MODIFIED:
            page = revalidated(cached, answer)
            if "link" in answer.headers or not (call.is_page and may_have_grown(url, page)):
                return page
            answer = await self._governed(method, url, headers, body, demand)
        if method == "GET":
            wire.cache.put(key, answer)
        return answer

    async def _governed(self, method: str, url: str, headers: Mapping[str, str], body: bytes, demand: Demand) -> Answer:
        wire, name = self._wire, self._credentials.name
        async with wire.governor.turn(name, demand) as sent_at:
            answer = await self._send_unless_down(method, url, headers, body)
        quota = wire.governor.learn(name, demand, answer)
        if quota is not None:
            wire.observer.quota(name, quota.resource, quota.remaining, quota.limit, quota.reset)
        wire.governor.judge(name, demand, answer, quota, sent_at)
        return answer

    async def _send_unless_down(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        """Send a request; while GitHub is unavailable, send it only if no other request is probing already."""
        breakers, name = self._wire.breakers, self._credentials.name
        if not breakers.may_ask(name):
            raise NotAsked(f"{method} {CALL.get().route}")
        try:
            answer = await self._send(method, url, headers, body)
        except Unavailable:
            breakers.fail(name)
            raise
        if answer.status >= 500:
            breakers.fail(name)
        else:
            breakers.succeed(name)
        return answer

    async def _send(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> Answer:
        wire, route = self._wire, CALL.get().route
        started, sent = wire.timing.clock(), wire.clock.wall()
        status = 0
        # A redirected write would arrive as a GET (301, 302); aiohttp keeps credentials from other origins.
        follow = method == "GET" and CALL.get().follow
        try:
            async with wire.session.request(
                method, url, headers=headers, data=body, timeout=wire.timeout, allow_redirects=follow
            ) as response:
                content = await response.read()
                status = response.status
                wire.clock.learn(response.headers, sent)
                return Answer(status, response.headers, content)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            # Only if there was no connection, it is certain that nothing was sent.
            problem, may_have_been_sent = problem_of(error), not isinstance(error, aiohttp.ClientConnectorError)
        finally:
            wire.observer.request(method, route, status, wire.timing.clock() - started)
        # Raise outside the `except`: aiohttp's errors hold the request's headers, and with them the token.
        raise Unavailable(f"{method} {route}: {problem}", sent=may_have_been_sent)

    def _refuse_undeclared(self, request: str) -> None:
        if CALL.get().write and self._writing is None:
            raise WriteRefused(f"{request}: {NOTHING_DECLARED}")

    def _refuse_strange(self, url: str, request: str) -> None:
        """Refuse other hosts, which would get our credentials, and `.` or `..` in a path, which would change it."""
        api_url, request_url = urlsplit(self._wire.api_url), urlsplit(url)
        if (api_url.scheme, api_url.netloc) != (request_url.scheme, request_url.netloc):
            raise ValueError(f"{request}: {request_url.hostname} is not the host of GITHUB_API_URL")
        if {".", ".."} & set(request_url.path.split("/")):
            raise ValueError(f"{request}: a value of the path is '.' or '..'")
