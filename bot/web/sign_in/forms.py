"""Forms that people send: a small body, from a page of the bot, with the token of their session."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from urllib.parse import parse_qsl

from aiohttp import hdrs, web

from bot.web.bodies import Bodies, HeldBody
from bot.web.problems import Problem
from bot.web.sign_in.keys import SignInKeys
from bot.web.sign_in.sessions import Session
from bot.web.sign_in.texts import FORM_EXPIRED, NOT_A_FORM, ORIGIN

FORM_BYTES = 16 * 1024
FORMS_IN_FLIGHT = 1024 * 1024
"""Bytes of all forms that are arriving together."""
MOST_FIELDS = 50
FORM_TYPE = "application/x-www-form-urlencoded"
TOKEN_FIELD = "token"  # noqa: S105 (a name)


class FormTokens:
    """Makes and checks the tokens of forms, so that no other site can send a form in somebody's name.

    Each page gets a new token: somebody could guess a constant one from the size of compressed pages
    (https://www.breachattack.com).
    """

    def __init__(self, keys: SignInKeys) -> None:
        self._keys = keys

    def make(self, session: Session) -> str:
        """Return a token of a session."""
        nonce = secrets.token_hex(16)
        return f"{nonce}.{self._keys.sign('form', session.digest, nonce)}"

    def fits(self, session: Session, token: str) -> bool:
        """Say whether a token is of this session."""
        nonce, _, signature = token.partition(".")
        return self._keys.fits(signature, "form", session.digest, nonce)


class Forms:
    """Reads forms."""

    def __init__(self) -> None:
        self._bodies = Bodies(FORMS_IN_FLIGHT, FORM_BYTES)

    async def read(self, request: web.Request, origin: str | None) -> Mapping[str, str]:
        """Return the fields of a form that was sent from a page of this origin.

        Browsers send `Origin` with every POST. Raises `Problem`: 403 for another origin, 400 for what is no form.
        """
        if origin is None or request.headers.get(hdrs.ORIGIN) != origin:
            raise Problem(403, ORIGIN)
        if request.content_type != FORM_TYPE:
            raise Problem(400, NOT_A_FORM.format(most=FORM_BYTES))
        async with HeldBody(self._bodies, request) as body:
            try:
                return dict(parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=MOST_FIELDS))
            except ValueError:
                raise Problem(400, NOT_A_FORM.format(most=FORM_BYTES)) from None


def check_token(tokens: FormTokens, session: Session, form: Mapping[str, str]) -> None:
    """Raise `Problem` 403 for a form without the token of the session."""
    if not tokens.fits(session, form.get(TOKEN_FIELD, "")):
        raise Problem(403, FORM_EXPIRED)
