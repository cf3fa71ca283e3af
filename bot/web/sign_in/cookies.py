"""The cookies of sign-in, and the origin of the pages.

Every cookie has `Secure` and the prefix `__Host-`: browsers accept such cookies over https, and from this machine
itself (http://127.0.0.1, http://localhost), which Chromium and Firefox trust without encryption.
https://developer.mozilla.org/en-US/docs/Web/HTTP/Reference/Headers/Set-Cookie#cookie_prefixes
"""

from __future__ import annotations

from urllib.parse import urlsplit

from aiohttp import web

from bot.core.patterns import Pattern

SESSION_COOKIE = "__Host-nightjar-session"
SIGN_IN_COOKIE = "__Host-nightjar-sign-in"
"""Remembers the sign-in that this browser has begun."""

USUAL_PORTS = {"https": ":443", "http": ":80"}

_THIS_MACHINE = Pattern(r"(?:localhost|127\.0\.0\.1|\[::1\])(?::[0-9]{1,5})?")


def set_cookie(response: web.StreamResponse, name: str, value: str, seconds: float) -> None:
    """Set a cookie that no script can read. Requests from other sites send it only if somebody follows a link."""
    response.set_cookie(name, value, max_age=round(seconds), path="/", secure=True, httponly=True, samesite="Lax")


def remove_cookie(response: web.StreamResponse, name: str) -> None:
    """Have the browser forget a cookie."""
    response.set_cookie(name, "", max_age=0, path="/", secure=True, httponly=True, samesite="Lax")


class OwnOrigin:
    """The origin of the pages: that of `public_url`; without it, a request's `Host` if that is this machine itself.

    The sender of a request chooses its `Host`, so no other `Host` decides where a person is redirected. `public` is the
    origin of `public_url`, None without one; `is_trusted` says whether browsers store cookies from there.
    """

    def __init__(self, public_url: str | None) -> None:
        parts = urlsplit(public_url or "")
        # Browsers leave out the port that a scheme has anyway: https://www.rfc-editor.org/rfc/rfc6454#section-6.2
        host = parts.netloc.lower().removesuffix(USUAL_PORTS.get(parts.scheme, " "))
        self.public = f"{parts.scheme}://{host}" if host else None
        self.is_trusted = parts.scheme == "https" or _THIS_MACHINE.fullmatch(parts.netloc) is not None

    def of(self, request: web.Request) -> str | None:
        """Return the origin, such as `https://ci.example.org`; None where nobody can sign in."""
        if self.public is not None:
            return self.public if self.is_trusted else None
        return f"http://{request.host}" if _THIS_MACHINE.fullmatch(request.host) else None
