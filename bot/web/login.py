"""`/login`, the address that GitHub sends people back to, and `/logout`.

Between the two nothing is stored here: what the browser has begun is in a signed cookie of its own, from which the
state and the verifier of PKCE are derived. So an address with a code is good for nothing in another browser.
https://www.rfc-editor.org/rfc/rfc9700#section-2.1
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from urllib.parse import quote, unquote

import structlog
from aiohttp import hdrs, web
from procrastinate.exceptions import ConnectorException

from bot.core.errors import TryAgain
from bot.core.patterns import Pattern
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
"""What is signed for what."""

log: structlog.stdlib.BoundLogger = structlog.get_logger(__name__)


def own_path(text: str) -> str:
    """Return a path within these pages to redirect a person to; `/` for anything else."""
    fits = len(text) <= LONGEST_NEXT and _PATH.fullmatch(text) is not None
    return text if fits and not text.startswith((LOGIN_PATH, LOGOUT_PATH)) else HOME


class BegunSignIns:
    """The sign-ins that browsers have begun; `now` is in seconds since 1970."""

    def __init__(self, keys: SignInKeys, now: Callable[[], float] = time.time) -> None:
        self._keys = keys
        self._now = now

    def begin(self, destination: str) -> str:
        """Return the text of the cookie of a new sign-in, after which a person goes to the path `destination`."""
        text = f"{secrets.token_hex(NONCE_BYTES)}.{round(self._now())}.{quote(destination, safe='')}"
        return f"{text}.{self._keys.sign(COOKIE, text)}"

    def destination(self, cookie: str, state: str) -> str | None:
        """Return where a person goes next; None unless this state belongs to this cookie, and is not too old."""
        form = _BEGUN.fullmatch(cookie)
        if form is None or not self._keys.fits(form[4], COOKIE, f"{form[1]}.{form[2]}.{form[3]}"):
            return None
        age = self._now() - int(form[2])
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
    """The routes; without `viewers.parts` they say how to turn sign-in on."""

    def __init__(self, viewers: Viewers, begun: BegunSignIns | None) -> None:
        self._viewers = viewers
        self._begun = begun
        self._forms = Forms()

    def operations(self) -> Sequence[Operation]:
        """Return them."""
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
            return await self._explained(request, 404, SIGN_IN_OFF)
        origin = parts.origin.of(request)
        if origin is None:
            return await self._explained(request, 404, NO_ADDRESS)
        cookie = begun.begin(own_path(request.query.get("next", HOME)))
        challenge = pkce_challenge(begun.verifier(cookie))
        response = _sent_to(parts.client.authorize_url(origin + CALLBACK_PATH, begun.state(cookie), challenge))
        set_cookie(response, SIGN_IN_COOKIE, cookie, SIGN_IN_SECONDS)
        return response

    async def _callback(self, request: web.Request) -> web.StreamResponse:
        request.app[PAGES].admit(request)
        parts, begun = self._viewers.parts, self._begun
        origin = parts.origin.of(request) if parts else None
        if parts is None or begun is None or origin is None:
            return await self._explained(request, 404, NO_ADDRESS if parts else SIGN_IN_OFF)
        cookie = request.cookies.get(SIGN_IN_COOKIE, "")
        destination = begun.destination(cookie, request.query.get("state", ""))
        if destination is None:
            return await self._explained(request, 400, NOT_BEGUN_HERE.format(minutes=SIGN_IN_SECONDS // 60))
        code = request.query.get("code", "")
        if request.query.get("error") or not code:
            return await self._explained(request, 400, DENIED)
        try:
            token = await parts.client.exchange(code, begun.verifier(cookie), origin + CALLBACK_PATH)
            person = await parts.client.person(token.value)
            # A session that was there before is not continued: whoever knew its cookie would then be this person.
            before = await self._viewers.of(request)
            if before is not None:
                await parts.sessions.end(before.session)
            text, seconds = await parts.sessions.begin(person, token)
        except (SignInRefused, TokenEnded) as error:
            log.warning("github refused a sign-in", reason=str(error))
            return await self._explained(request, 400, NOT_ACCEPTED)
        except TryAgain as error:
            log.warning("github did not answer a sign-in", reason=str(error))
            return await self._explained(request, 503, GITHUB_AWAY)
        except ConnectorException as error:
            raise Problem(503, DATABASE_UNAVAILABLE) from error
        log.info("signed in", person=person.id, login=person.login)
        response = _sent_to(destination)
        set_cookie(response, SESSION_COOKIE, text, seconds)
        remove_cookie(response, SIGN_IN_COOKIE)
        return response

    async def _logout(self, request: web.Request) -> web.StreamResponse:
        request.app[PAGES].admit(request)
        parts = self._viewers.parts
        if parts is None:
            return _sent_to(HOME)
        form = await self._forms.read(request, parts.origin.of(request))
        try:
            viewer = await self._viewers.of(request)
            if viewer is not None:
                check_token(parts.forms, viewer.session, form)
                await parts.sessions.end(viewer.session)
                await _revoked(parts, viewer.session.token)
        except ConnectorException as error:
            raise Problem(503, DATABASE_UNAVAILABLE) from error
        response = _sent_to(HOME)
        remove_cookie(response, SESSION_COOKIE)
        return response

    async def _explained(self, request: web.Request, status: int, detail: str) -> web.StreamResponse:
        response = await request.app[PAGES].answer(
            request, TEMPLATE, {"detail": detail, "status": status}, status=status
        )
        response.headers["Referrer-Policy"] = "no-referrer"
        if status != 404:
            remove_cookie(response, SIGN_IN_COOKIE)
        return response


async def _revoked(parts: SignInParts, token: str) -> None:
    try:
        await parts.client.revoke(token)
    except (TokenEnded, TryAgain) as error:
        log.warning("a token was not revoked; it ends by itself", reason=str(error))


def _sent_to(address: str) -> web.Response:
    # As it is written: a normalized address may lead elsewhere.
    headers = {hdrs.LOCATION: address, hdrs.CACHE_CONTROL: "no-store", "Referrer-Policy": "no-referrer"}
    return web.Response(status=303, headers=headers)
