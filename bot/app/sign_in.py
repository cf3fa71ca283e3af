"""Sign-in on the pages, from the settings of a process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp
import structlog
from gidgethub import BadRequest

from bot.core.events import Payload
from bot.core.http import open_session
from bot.core.web_json import HTTP
from bot.github.errors import is_not_found
from bot.github.sign_in import SignInClient
from bot.web.login import BegunSignIns
from bot.web.sign_in.cookies import OwnOrigin
from bot.web.sign_in.forms import FormTokens
from bot.web.sign_in.keys import SignInKeys
from bot.web.sign_in.operators import Operators, no_operators
from bot.web.sign_in.sessions import Sessions
from bot.web.sign_in.viewers import SignInParts, Viewers

if TYPE_CHECKING:
    from bot.config import Config
    from bot.config.environment import Settings
    from bot.feature import Services
    from bot.github.client import GitHub


log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class SignIn:
    """Who is signed in, and what browsers have begun; None if nobody can sign in."""

    viewers: Viewers
    begun: BegunSignIns | None
    operators: Operators


class TeamMembers:
    """Asks GitHub for the members of a team, through the App's installation on the organization.

    `github_for` gives a client for `owner/name`.
    """

    def __init__(self, config: Config, github_for: Callable[[str], Awaitable[GitHub]]) -> None:
        self._config = config
        self._github_for = github_for

    async def __call__(self, organization: str, team: str) -> Collection[int]:
        """Return their IDs; nobody for a team that GitHub does not know, or of an organization without a repository."""
        names = [name for name in self._config.repositories if name.lower().startswith(f"{organization}/")]
        if not names:
            log.warning("operators: app.yaml has no repository of the team's organization", organization=organization)
            return ()
        github = await self._github_for(names[0])
        where = {"org": organization, "team": team}
        try:
            return [
                Payload(one, "member").integer("id")
                async for one in github.getiter("/orgs/{org}/teams/{team}/members", where)
            ]
        except BadRequest as error:
            if not is_not_found(error):
                raise
            log.warning("operators: there is no such team", organization=organization, team=team)
            return ()


def make_sign_in(config: Config, settings: Settings, services: Services) -> SignIn:
    """Return the parts of sign-in; without GITHUB_CLIENT_ID those that let nobody in."""
    if settings.session_secret is None:
        nobody = Viewers()
        return SignIn(nobody, None, no_operators(nobody))
    # No cookies: those that GitHub sets for one person must not be sent for another.
    session = open_session(
        connector=services.part(HTTP).connector, connector_owner=False, cookie_jar=aiohttp.DummyCookieJar()
    )
    client = sign_in_client(settings, session)
    assert client is not None, "the settings have all of it, or none"
    keys = SignInKeys(settings.session_secret.get_secret_value())
    parts = SignInParts(
        client,
        Sessions(services.records, keys, services.now),
        FormTokens(keys),
        OwnOrigin(config.public_url),
        services.records,
    )
    viewers = Viewers(parts, sees_operators=lambda person: operators.sees_link(person))
    operators = Operators(config.operators, viewers, TeamMembers(config, services.github_for))
    return SignIn(viewers, BegunSignIns(keys, services.now), operators)


def sign_in_client(settings: Settings, session: aiohttp.ClientSession) -> SignInClient | None:
    """Return the client that asks GitHub on behalf of people; None without GITHUB_CLIENT_ID."""
    if settings.client_id is None or settings.client_secret is None:
        return None
    return SignInClient(
        session,
        github_url=settings.github_url,
        api_url=settings.api_url,
        client_id=settings.client_id,
        client_secret=settings.client_secret.get_secret_value(),
    )
