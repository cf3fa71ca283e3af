"""Who operates the bot: people and teams of `operators` in app.yaml, as GitHub knows them now."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence

from aiohttp import web
from cachetools import TTLCache
from gidgethub import GitHubException

from bot.core.errors import TryAgain
from bot.core.events import Person
from bot.web.problems import Problem
from bot.web.sign_in.texts import NOT_KNOWN, NOT_OPERATOR
from bot.web.sign_in.viewers import FRESH_SECONDS, RETRY_SECONDS, Viewers
from bot.web.texts import NO_PAGE

MOST_TEAMS = 100
MOST_LINKS = 10_000
LINK_SECONDS = 600.0
"""How long an answer decides whether a page links the pages of operators; those pages themselves ask again."""

MembersOf = Callable[[str, str], Awaitable[Collection[int]]]
"""The IDs of the members of a team, by organization and slug; raises `TryAgain` or GitHubException without GitHub."""


class Operators:
    """Decides who is an operator; `listed` are IDs, `@LOGIN` and `@ORGANIZATION/TEAM`."""

    def __init__(self, listed: Sequence[str], viewers: Viewers, members_of: MembersOf) -> None:
        self._ids = {int(operator) for operator in listed if operator.isdecimal()}
        names = [operator.removeprefix("@").lower() for operator in listed if not operator.isdecimal()]
        self._logins = {name for name in names if "/" not in name}
        self._teams = [name for name in names if "/" in name]
        self._viewers = viewers
        self._members_of = members_of
        self._members: TTLCache[str, frozenset[int]] = TTLCache(MOST_TEAMS, FRESH_SECONDS)
        self._links: TTLCache[int, bool] = TTLCache(MOST_LINKS, LINK_SECONDS)

    async def check(self, request: web.Request) -> None:
        """Raise `Problem` for whoever is no operator: 404 for somebody who is not signed in, else 403 and why.

        Raises `Problem` 503 if GitHub does not answer, and DatabaseFailure without a database.
        """
        try:
            person = await self._viewers.current(request)
            if person is None:
                raise Problem(404, NO_PAGE)
            if not await self.includes(person):
                raise Problem(403, NOT_OPERATOR.format(login=person.login, id=person.id))
        except (TryAgain, GitHubException) as error:
            raise Problem(503, NOT_KNOWN, headers={"Retry-After": str(RETRY_SECONDS)}) from error

    async def sees_link(self, person: Person) -> bool:
        """Return whether a person's pages link those of operators, by an answer of the last minutes if there is one."""
        is_operator = self._links.get(person.id)
        if is_operator is None:
            try:
                is_operator = await self.includes(person)
            except (TryAgain, GitHubException):
                is_operator = False
            self._links[person.id] = is_operator
        return is_operator

    async def includes(self, person: Person) -> bool:
        """Say whether a person is an operator, by ID, by login, or as a member of a team."""
        if person.id in self._ids or person.login.lower() in self._logins:
            return True
        for team in self._teams:
            members = self._members.get(team)
            if members is None:
                organization, _, slug = team.partition("/")
                members = self._members[team] = frozenset(await self._members_of(organization, slug))
            if person.id in members:
                return True
        return False


async def _nobody(_: str, __: str) -> Collection[int]:
    return ()


def no_operators(viewers: Viewers) -> Operators:
    """Return an empty list of operators."""
    return Operators((), viewers, _nobody)
