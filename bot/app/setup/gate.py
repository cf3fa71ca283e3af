"""Admit to the pages of the set-up only the browser in which the printed address was opened, and no other site.

A page of a stranger can make a browser send requests to this machine, and by DNS rebinding even read the answers
(https://en.wikipedia.org/wiki/DNS_rebinding): so names of hosts are refused. Other users of this machine can connect
too: so the address holds a token that works once. Cookies count for all ports of a host: so forms hold a token of their
own.
"""

from __future__ import annotations

import hmac
import ipaddress
import secrets
from collections.abc import Callable
from urllib.parse import urlsplit

from aiohttp import web

from bot.app.setup.texts import ADDRESS_USED, BAD_FORM, NO_SESSION, WRONG_HOST
from bot.web.problems import Problem

SETUP = "/setup"
COOKIE = "nightjar_setup"
TOKEN = "token"  # noqa: S105
FORM_FIELD = "form"
LOCALHOST = "localhost"


class SetupGate:
    """Decides about requests. `announce` prints an address whenever there is a new one.

    `host` and `port` are where the server listens; a `host` other than of this machine admits addresses of others.
    """

    def __init__(self, host: str, port: int, announce: Callable[[str], None], *, remote: bool = False) -> None:
        self._host = host
        self.port = port
        self._announce = announce
        self._remote = remote
        self._used: set[str] = set()
        self._token = secrets.token_urlsafe(32)
        self._session = secrets.token_urlsafe(32)
        self.form_token = secrets.token_urlsafe(32)

    @property
    def address(self) -> str:
        """Return the address that works once."""
        host = "127.0.0.1" if self._host in ("0.0.0.0", "::", "", LOCALHOST) else self._host  # noqa: S104
        return f"http://{f'[{host}]' if ':' in host else host}:{self.port}{SETUP}?{TOKEN}={self._token}"

    def check_host(self, request: web.Request) -> None:
        """Raise `Problem` 421 for a request by a name under which another site could ask."""
        if not self._is_ours(request.host):
            raise Problem(421, WRONG_HOST)

    def enter(self, request: web.Request) -> web.Response | None:
        """Return the redirection that begins a session if the address has its token; None without a token.

        Raises `Problem` 403 for a token that was used or is none.
        """
        self.check_host(request)
        given = request.query.get(TOKEN, "")
        if not given:
            return None
        if not self._is_inside(request):
            if given in self._used:
                self._used.clear()
                self._token = secrets.token_urlsafe(32)
                self._announce(self.address)
                raise Problem(403, ADDRESS_USED)
            if not _same(given, self._token):
                raise Problem(403, NO_SESSION)
            self._used.add(given)
        inside = web.HTTPSeeOther(SETUP, headers={"Cache-Control": "no-store", "Referrer-Policy": "no-referrer"})
        answer = web.Response(status=inside.status, headers=inside.headers)
        # Lax instead of Strict, because GitHub sends the browser back here.
        answer.set_cookie(COOKIE, self._session, path=SETUP, httponly=True, samesite="Lax")
        return answer

    def check(self, request: web.Request) -> None:
        """Raise `Problem` 421 or 403 for a request of anybody else."""
        self.check_host(request)
        if not self._is_inside(request):
            raise Problem(403, NO_SESSION)

    def check_form(self, request: web.Request, given: object) -> None:
        """Raise `Problem` 403 for a form that is not of our page."""
        self.check(request)
        if not isinstance(given, str) or not _same(given, self.form_token):
            raise Problem(403, BAD_FORM)

    def _is_inside(self, request: web.Request) -> bool:
        return _same(request.cookies.get(COOKIE, ""), self._session)

    def _is_ours(self, host: str) -> bool:
        try:
            name = urlsplit(f"//{host}").hostname or ""
        except ValueError:
            return False
        if name == LOCALHOST or (self._remote and name == self._host.lower()):
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return address.is_loopback or self._remote


def _same(given: str, wanted: str) -> bool:
    return hmac.compare_digest(given.encode("utf-8", "replace"), wanted.encode())
