"""Find who requests a page, and which repositories they may read.

With the person's own token, the bot asks GitHub whether they may read the repository in the address, even if the bot
does not serve that repository. So the request uses none of the bot's quota, and its duration reveals nothing.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any, TypeVar
from urllib.parse import urlencode

import structlog
from aiohttp import hdrs, web
from cachetools import TTLCache

from bot.core.errors import TryAgain
from bot.core.events import Person
from bot.engine.records import Records
from bot.engine.sql.errors import DatabaseFailure
from bot.github.pull_heads import repository_id_of
from bot.github.sign_in import MOST_REPOSITORIES, RepositoryAccess, SignInClient, TokenEnded
from bot.web.problems import Problem
from bot.web.sign_in.cookies import SESSION_COOKIE, OwnOrigin
from bot.web.sign_in.forms import Forms, FormTokens, check_token
from bot.web.sign_in.sessions import Session, Sessions
from bot.web.sign_in.texts import NOT_KNOWN
from bot.web.texts import NO_PAGE

LOGIN_PATH = "/login"
FRESH_SECONDS = 60.0
"""How long GitHub's answer about a person and a repository is cached."""
MOST_ANSWERS = 20_000
RETRY_SECONDS = 30
PRIVATE = "private, no-store"
VIEWER = web.RequestKey("viewer", object)

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


class ReaderRole(Enum):
    """For whom a page suggests what to do next."""

    UNKNOWN = auto()
    """Nobody is signed in, or the page is of no repository."""
    READER = auto()
    MAINTAINER = auto()
    """Has the write role, or a higher one."""
    OPERATOR = auto()


ROLES: web.RequestKey[dict[str, ReaderRole]] = web.RequestKey("roles", dict)


@dataclass(frozen=True, slots=True)
class Viewer:
    """Somebody who is signed in."""

    session: Session
    forms: FormTokens

    @property
    def person(self) -> Person:
        """The person, known by ID."""
        return self.session.person

    def form_token(self) -> str:
        """Return what a form of a page sends back to show that the page is ours; a new one each time."""
        return self.forms.make(self.session)


@dataclass(frozen=True, slots=True)
class SignInParts:
    """The parts of sign-in."""

    client: SignInClient
    sessions: Sessions
    forms: FormTokens
    origin: OwnOrigin
    records: Records


async def _nobody_sees(_: Person) -> bool:
    return False


class Viewers:
    """Finds who sends a request; without `parts` nobody is ever signed in. `clock` counts seconds.

    `sees_operators` says whether a person's pages link those of operators.
    """

    def __init__(
        self,
        parts: SignInParts | None = None,
        clock: Callable[[], float] = time.monotonic,
        sees_operators: Callable[[Person], Awaitable[bool]] = _nobody_sees,
    ) -> None:
        self.parts = parts
        self._sees_operators = sees_operators
        self._answers: TTLCache[tuple[str, str], RepositoryAccess | None] = TTLCache(MOST_ANSWERS, FRESH_SECONDS, clock)
        self._roles: TTLCache[tuple[str, str], ReaderRole] = TTLCache(MOST_ANSWERS, FRESH_SECONDS, clock)
        self._people: TTLCache[str, Person] = TTLCache(MOST_ANSWERS, FRESH_SECONDS, clock)
        self._forms = Forms()

    async def of(self, request: web.Request) -> Viewer | None:
        """Return who sends a request, None if nobody is signed in. Raises DatabaseFailure without a database."""
        # None is a valid answer, so `self` stands for a request without one.
        cached_viewer = request.get(VIEWER, self)
        if cached_viewer is not self:
            assert cached_viewer is None or isinstance(cached_viewer, Viewer)
            return cached_viewer
        cookie = request.cookies.get(SESSION_COOKIE)
        session = await self.parts.sessions.find(cookie) if self.parts and cookie else None
        viewer = Viewer(session, self.parts.forms) if self.parts and session else None
        request[VIEWER] = viewer
        return viewer

    async def may_read(self, request: web.Request, repository: str) -> bool:
        """Return whether the sender of a request has access to a repository on GitHub.

        Raises `Problem` 503 if GitHub is unavailable.
        """
        try:
            return bool(await self.readable(request, [repository]))
        except TryAgain as error:
            raise Problem(503, NOT_KNOWN, headers={"Retry-After": str(RETRY_SECONDS)}) from error

    async def readable(self, request: web.Request, repositories: Sequence[str]) -> Collection[str]:
        """Return those of the repositories to which the sender of a request has access on GitHub.

        Asks GitHub once for every hundred without a cached answer. Raises `TryAgain` if GitHub is unavailable.
        """
        return [name for name, access in (await self._access(request, repositories)).items() if access]

    async def role(self, request: web.Request, repository: str) -> ReaderRole:
        """Return for whom a page suggests what to do next; `repository` is empty on a page of no repository.

        Asks GitHub as `readable` does. Without GitHub, a page must still open: somebody who is signed in is a READER.
        It is the same for the whole request, because pages are cached for the readers of a role.
        """
        roles: dict[str, ReaderRole] = request.setdefault(ROLES, {})
        if repository not in roles:
            roles[repository] = await self._role(request, repository)
        return roles[repository]

    async def _role(self, request: web.Request, repository: str) -> ReaderRole:
        viewer = await self.of(request)
        if viewer is None:
            return ReaderRole.UNKNOWN
        if await self._sees_operators(viewer.person):
            return ReaderRole.OPERATOR
        if not repository:
            return ReaderRole.UNKNOWN
        key = viewer.session.digest, repository.lower()
        role = self._roles.get(key)
        if role is None:
            try:
                access = (await self._access(request, [repository]))[repository]
            except TryAgain:
                access = None
            if await self.of(request) is None:  # GitHub has just ended the session
                return ReaderRole.UNKNOWN
            # Also without GitHub: the next page must not wait for it again.
            role = self._roles[key] = ReaderRole.MAINTAINER if access and access.may_write else ReaderRole.READER
        return role

    async def _access(self, request: web.Request, repositories: Sequence[str]) -> dict[str, RepositoryAccess | None]:
        """Return the access of the sender to each repository, None for none. Raises `TryAgain` without GitHub."""
        viewer = await self.of(request)
        if viewer is None or self.parts is None:
            return dict.fromkeys(repositories)
        digest = viewer.session.digest
        unknown = [name for name in repositories if (digest, name.lower()) not in self._answers]
        answers = {name: self._answers.get((digest, name.lower())) for name in repositories}
        for start in range(0, len(unknown), MOST_REPOSITORIES):
            batch = unknown[start : start + MOST_REPOSITORIES]
            readable = await self._request_readable(self.parts, request, viewer, batch)
            answers |= {name: readable.get(name) for name in batch}
            self._answers.update({(digest, name.lower()): readable.get(name) for name in batch})
        return answers

    async def current(self, request: web.Request) -> Person | None:
        """Return the sender of a request as GitHub knows them now; None if they are not signed in, or no longer.

        Raises `TryAgain` if GitHub is unavailable.
        """
        viewer = await self.of(request)
        if viewer is None or self.parts is None:
            return None
        person = self._people.get(viewer.session.digest)
        if person is None:
            try:
                person = await self.parts.client.person(viewer.session.token)
            except TokenEnded:
                await self.parts.sessions.end(viewer.session)
                request[VIEWER] = None
                return None
            self._people[viewer.session.digest] = person
        return person if person.id == viewer.person.id else None

    async def pressed(self, request: web.Request) -> Viewer:
        """Return who sent a form from a page of the bot. Raises `Problem` for a form from anywhere else."""
        viewer, _ = await self.sent_form(request)
        return viewer

    async def sent_form(self, request: web.Request) -> tuple[Viewer, Mapping[str, str]]:
        """Return who sent a form from a page of the bot, and its fields. Raises `Problem` as `pressed` does."""
        viewer = await self.of(request)
        if viewer is None or self.parts is None:
            raise Problem(404, NO_PAGE)
        form = await self._forms.read(request, self.parts.origin.of(request))
        check_token(self.parts.forms, viewer.session, form)
        return viewer, form

    async def context(self, request: web.Request, address: str = "") -> Mapping[str, Any]:
        """Return the variables of every template that depend on the reader.

        Whoever signs in on the page returns to `address`; empty: to that of the request.
        """
        try:
            viewer = await self.of(request)
        except DatabaseFailure:
            viewer = None  # the page itself says that the database is unavailable
        address = address or (str(request.rel_url) if request.method in (hdrs.METH_GET, hdrs.METH_HEAD) else "/")
        offers_sign_in = self.parts is not None and viewer is None and not request.path.startswith(LOGIN_PATH)
        return {
            "viewer": viewer.person.login if viewer else "",
            "operates": viewer is not None and await self._sees_operators(viewer.person),
            "form_token": viewer.form_token() if viewer else "",
            "sign_in": f"{LOGIN_PATH}?{urlencode({'next': address})}" if offers_sign_in else "",
        }

    async def _request_readable(
        self, parts: SignInParts, request: web.Request, viewer: Viewer, repositories: Sequence[str]
    ) -> Mapping[str, RepositoryAccess]:
        try:
            access_by_name = await parts.client.readable(viewer.session.token, repositories)
        except TokenEnded:
            await parts.sessions.end(viewer.session)
            request[VIEWER] = None
            return {}
        except TryAgain as error:
            log.warning("github does not say what somebody may read", person=viewer.person.id, reason=str(error))
            raise
        # The name may belong to another repository by now, whose readers must not see the results of the first one.
        stored_ids = {name: await repository_id_of(parts.records, name) for name in access_by_name}
        return {name: access for name, access in access_by_name.items() if stored_ids[name] in (None, access.id)}


Response = TypeVar("Response", bound=web.StreamResponse)


def keep_private(request: web.Request, response: Response) -> Response:
    """Keep caches from storing an answer to somebody who is signed in."""
    if request.get(VIEWER) is not None:
        response.headers[hdrs.CACHE_CONTROL] = PRIVATE
        response.headers[hdrs.VARY] = "Cookie"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers.popall(hdrs.ETAG, None)
    return response
