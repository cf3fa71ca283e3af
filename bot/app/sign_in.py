"""Sign-in on the pages, from the settings of a process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp

from bot.core.web_json import HTTP
from bot.github.sign_in import SignInClient
from bot.web.login import BegunSignIns
from bot.web.sign_in.cookies import OwnOrigin
from bot.web.sign_in.forms import FormTokens
from bot.web.sign_in.keys import SignInKeys
from bot.web.sign_in.sessions import Sessions
from bot.web.sign_in.viewers import SignInParts, Viewers

if TYPE_CHECKING:
    from bot.config import Config
    from bot.config.environment import Settings
    from bot.feature import Services


@dataclass(frozen=True, slots=True)
class SignIn:
    """Who is signed in, and what browsers have begun; None where nobody can sign in."""

    viewers: Viewers
    begun: BegunSignIns | None


def make_sign_in(config: Config, settings: Settings, services: Services) -> SignIn:
    """Return the parts of sign-in; without GITHUB_CLIENT_ID those that let nobody in."""
    if settings.client_id is None or settings.client_secret is None or settings.session_secret is None:
        return SignIn(Viewers(), None)
    shared = services.part(HTTP)
    # Without cookies: what GitHub sets for one person must not be sent for another.
    session = aiohttp.ClientSession(
        connector=shared.connector, connector_owner=False, cookie_jar=aiohttp.DummyCookieJar()
    )
    client = SignInClient(
        session,
        github_url=settings.github_url,
        api_url=settings.api_url,
        client_id=settings.client_id,
        client_secret=settings.client_secret.get_secret_value(),
    )
    keys = SignInKeys(settings.session_secret.get_secret_value())
    parts = SignInParts(
        client,
        Sessions(services.records, keys, services.now),
        FormTokens(keys),
        OwnOrigin(config.public_url),
        services.records,
    )
    return SignIn(Viewers(parts), BegunSignIns(keys, services.now))
