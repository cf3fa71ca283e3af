"""`/login`, the address that GitHub sends people back to, and `/logout`.

Between the two the server stores nothing: a signed cookie of the browser holds the sign-in that it has begun, and the
state and the verifier of PKCE are derived from the cookie. So an address with a code is useless in another browser.
https://www.rfc-editor.org/rfc/rfc9700#section-2.1
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from urllib.parse import quote, unquote

import structlog
from aiohttp import hdrs, web

from bot.core.errors import TryAgain
from bot.core.patterns import Pattern
from bot.engine.sql.errors import DatabaseFailure
from bot.github.sign_in import SignInRefused, TokenEnded
from bot.web.openapi import Operation, Parameter, ResponseSchema, problem
from bot.web.pages import PAGES
from bot.web.problems import Problem
from bot.web.sign_in.cookies import SESSION_COOKIE, SIGN_IN_COOKIE, remove_cookie, set_cookie
from bot.web.sign_in.forms import Forms, check_token
from bot.web.sign_in.keys import SignInKeys, pkce_challenge
from bot.web.sign_in.texts import DENIED, GITHUB_AWAY, NO_ADDRESS, NOT_ACCEPTED, NOT_BEGUN_HERE, SIGN_IN_OFF
from bot.web.sign_in.viewers import LOGIN_PATH, SignInParts, Viewers
from bot.web.texts import DATABASE_UNAVAILABLE

CALLBACK_PATH, LOGOUT_PATH = "/login/callback", "/logout"
TEMPLATE = "sign_in.html"
SIGN_IN_SECONDS = 600
"""How long a sign-in may take; GitHub's code is valid for as long."""
LONGEST_NEXT = 800
"""Characters, each of which may take three in the cookie: a header has 4,096 at most."""
NONCE_BYTES = 16
HOME = "/"
# No backslash, which browsers read as a slash, and no second slash, after which comes a host.
_PATH = Pattern(r"/(?:[!-.0-\[\]-~][!-\[\]-~]*)?")
_BEGUN = Pattern(r"([0-9a-f]{32})\.([0-9]{1,12})\.([A-Za-z0-9_.~%-]*)\.([A-Za-z0-9_-]{43})")
STATE, VERIFIER, COOKIE = "state", "verifier", "sign-in"
"""The purposes of signatures."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def own_path(text: str) -> str:
    """Return a path within these pages to redirect a person to; `/` for anything else."""
    fits = len(text) <= LONGEST_NEXT and _PATH.fullmatch(text) is not None
    return text if fits and not text.startswith((LOGIN_PATH, LOGOUT_PATH)) else HOME


class BegunSignIns:
    """The sign-ins that browsers have begun; `clock` returns seconds since 1970.

    The cookie is `NONCE.SECONDS.DESTINATION.SIGNATURE`, such as `0f….1795152000.%2Fr%2Foctocat%2Fcompiler.Yx…`.
    """

    def __init__(self, keys: SignInKeys, clock: Callable[[], float] = time.time) -> None:
        self._keys = keys
        self._clock = clock

    def begin(self, destination: str) -> str:
        """Return the text of a cookie for a new sign-in, which redirects the person to the path `destination`."""
        text = f"{secrets.token_hex(NONCE_BYTES)}.{round(self._clock())}.{quote(destination, safe='')}"
        return f"{text}.{self._keys.sign(COOKIE, text)}"

    def destination(self, cookie: str, state: str) -> str | None:
        """Return the path to redirect to; None if the state is not that of the cookie, or the cookie is too old."""
        form = _BEGUN.fullmatch(cookie)
        if form is None or not self._keys.fits(form[4], COOKIE, f"{form[1]}.{form[2]}.{form[3]}"):
            return None
        age = self._clock() - int(form[2])
        if not 0 <= age + 1 <= SIGN_IN_SECONDS or not self._keys.fits(state, STATE, cookie):
            return None
        return own_path(unquote(form[3]))

    def state(self, cookie: str) -> str:
        """Return the state of a sign-in."""
        return self._keys.sign(STATE, cookie)

    def verifier(self, cookie: str) -> str:
        """Return the verifier of PKCE of a sign-in: 43 characters that never reach the browser."""
        return self._keys.sign(VERIFIER, cookie)


class SignInRoutes:
    """The routes of sign-in; without `viewers.parts` they answer how to turn sign-in on."""

    def __init__(self, viewers: Viewers, begun: BegunSignIns | None) -> None:
        self._viewers = viewers
        self._begun = begun
        self._forms = Forms()

    def operations(self) -> Sequence[Operation]:
        """Return the sign-in routes."""
        page = ResponseSchema("Why sign-in does not work", media_type="text/html")
        destination = Parameter("next", "The path to go to afterwards.", {"type": "string"}, "query", required=False)
        code = Parameter("code", "GitHub's code.", {"type": "string"}, "query", required=False)
        state = Parameter("state", "The state of the sign-in.", {"type": "string"}, "query", required=False)
        moved = ResponseSchema("Redirects to GitHub", media_type="text/html")
        return [
            Operation("GET", LOGIN_PATH, "Sign in with GitHub", self._login, {303: moved, 404: page}, [destination]),
            Operation(
                "GET",
                CALLBACK_PATH,
                "Where GitHub sends people who sign in",
                self._callback,
                {303: moved, 400: page, 503: page},
                [code, state],
            ),
            Operation(
                "POST",
                LOGOUT_PATH,
                "Sign out",
                self._logout,
                {303: moved, 403: problem("The form was not sent from these pages")},
            ),
        ]

    async def _login(self, request: web.Request) -> web.StreamResponse:
        request.app[PAGES].admit(request)
        parts, begun = self._viewers.parts, self._begun
        if parts is None or begun is None:
            return await self._explanation(request, 404, SIGN_IN_OFF)
        origin = parts.origin.of(request)
        if origin is None:
            return await self._explanation(request, 404, NO_ADDRESS)
        cookie = begun.begin(own_path(request.query.get("next", HOME)))
        challenge = pkce_challenge(begun.verifier(cookie))
        response = _redirect(parts.client.authorize_url(origin + CALLBACK_PATH, begun.state(cookie), challenge))
        set_cookie(response, SIGN_IN_COOKIE, cookie, SIGN_IN_SECONDS)
        return response

    async def _callback(self, request: web.Request) -> web.StreamResponse:
        request.app[PAGES].admit(request)
        parts, begun = self._viewers.parts, self._begun
        origin = parts.origin.of(request) if parts else None
        if parts is None or begun is None or origin is None:
            return await self._explanation(request, 404, NO_ADDRESS if parts else SIGN_IN_OFF)
        cookie = request.cookies.get(SIGN_IN_COOKIE, "")
        destination = begun.destination(cookie, request.query.get("state", ""))
        if destination is None:
            return await self._explanation(request, 400, NOT_BEGUN_HERE.format(minutes=SIGN_IN_SECONDS // 60))
        code = request.query.get("code", "")
        if request.query.get("error") or not code:
            return await self._explanation(request, 400, DENIED)
        try:
            token = await parts.client.exchange(code, begun.verifier(cookie), origin + CALLBACK_PATH)
            person = await parts.client.person(token.value)
            # End the browser's earlier session: who knows its cookie would otherwise be signed in as this person.
            previous_viewer = await self._viewers.of(request)
            if previous_viewer is not None:
                await parts.sessions.end(previous_viewer.session)
            text, seconds = await parts.sessions.begin(person, token)
        except (SignInRefused, TokenEnded) as error:
            log.warning("github refused a sign-in", reason=str(error))
            return await self._explanation(request, 400, NOT_ACCEPTED)
        except TryAgain as error:
            log.warning("github did not answer a sign-in", reason=str(error))
            return await self._explanation(request, 503, GITHUB_AWAY)
        except DatabaseFailure as error:
            raise Problem(503, DATABASE_UNAVAILABLE) from error
        log.info("signed in", person=person.id, login=person.login)
        response = _redirect(destination)
        set_cookie(response, SESSION_COOKIE, text, seconds)
        remove_cookie(response, SIGN_IN_COOKIE)
        return response

    async def _logout(self, request: web.Request) -> web.StreamResponse:
        request.app[PAGES].admit(request)
        parts = self._viewers.parts
        if parts is None:
            return _redirect(HOME)
        form = await self._forms.read(request, parts.origin.of(request))
        try:
            viewer = await self._viewers.of(request)
            if viewer is not None:
                check_token(parts.forms, viewer.session, form)
                await parts.sessions.end(viewer.session)
                await _revoke(parts, viewer.session.token)
        except DatabaseFailure as error:
            raise Problem(503, DATABASE_UNAVAILABLE) from error
        response = _redirect(HOME)
        remove_cookie(response, SESSION_COOKIE)
        return response

    async def _explanation(self, request: web.Request, status: int, detail: str) -> web.StreamResponse:
        response = await request.app[PAGES].answer(
            request, TEMPLATE, {"detail": detail, "status": status}, status=status
        )
        response.headers["Referrer-Policy"] = "no-referrer"
        if status != 404:
            remove_cookie(response, SIGN_IN_COOKIE)
        return response


async def _revoke(parts: SignInParts, token: str) -> None:
    try:
        await parts.client.revoke(token)
    except (TokenEnded, TryAgain) as error:
        log.warning("a token was not revoked; it ends by itself", reason=str(error))


def _redirect(address: str) -> web.Response:
    # Send the address unchanged: a normalized one may lead elsewhere.
    headers = {hdrs.LOCATION: address, hdrs.CACHE_CONTROL: "no-store", "Referrer-Policy": "no-referrer"}
    return web.Response(status=303, headers=headers)
