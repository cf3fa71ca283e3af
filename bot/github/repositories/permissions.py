"""Look up people's roles in a repository on GitHub, and cache each for less than a minute."""

from __future__ import annotations

from cachetools import TTLCache
from gidgethub import HTTPException

from bot.core.events import Payload, Person
from bot.github.client import GitHub

ROLES = ("none", "read", "triage", "write", "maintain", "admin")
"""From least to most access.

https://docs.github.com/en/organizations/managing-user-access-to-your-organizations-repositories
"""

REMEMBERED_SECONDS = 45
"""Seconds for which a role is cached; a role that somebody has lost still counts for that long."""
REMEMBERED_PEOPLE = 10_000


class Permissions:
    """Look up roles by `GET /repos/{owner}/{repo}/collaborators/{login}/permission`."""

    def __init__(self) -> None:
        self._roles: TTLCache[tuple[str, int], str] = TTLCache(REMEMBERED_PEOPLE, REMEMBERED_SECONDS)

    async def role(self, github: GitHub, repository: str, person: Person) -> str:
        """Return the person's role, one of `ROLES`.

        The user ID in the answer must be the person's: a login that now belongs to another account, or to none, gives
        `none`.
        """
        key = (repository.lower(), person.id)
        role = self._roles.get(key)
        if role is None:
            role = self._roles[key] = await role_of(github, repository, person)
        return role


async def role_of(github: GitHub, repository: str, person: Person) -> str:
    """Return the person's current role with one request, without the cache."""
    url = "/repos/{+repo}/collaborators/{login}/permission"
    try:
        answer = Payload(await github.getitem(url, url_vars={"repo": repository, "login": person.login}))
    except HTTPException as error:
        # GitHub answers 404 for a login without an account:
        # https://docs.github.com/en/rest/collaborators/collaborators#get-repository-permissions-for-a-user
        if error.status_code == 404:
            return "none"
        raise
    if not answer.has("user", "id") or answer.integer("user", "id") != person.id:
        return "none"
    role = answer.text("role_name")
    # A custom role has a name of its own; `permission` is then the nearest of the four legacy levels.
    return role if role in ROLES else answer.string("permission")
