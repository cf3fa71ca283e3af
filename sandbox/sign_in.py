"""The pages of `/login/oauth`: a person says who they are, and is sent back to the App with a code.

https://docs.github.com/apps/creating-github-apps/authenticating-with-a-github-app/generating-a-user-access-token-for-a-github-app
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from aiohttp import web

from sandbox.journal import Request
from sandbox.model.apps import App
from sandbox.model.sign_in import (
    PERSON_TOKEN_LIFETIME,
    REFRESH_TOKEN_LIFETIME,
    WRONG_CLIENT,
    WRONG_REDIRECT,
    SignInError,
)
from sandbox.page.layout import frame

if TYPE_CHECKING:
    from sandbox.state import GitHubState

AUTHORIZE, ACCESS_TOKEN = "/login/oauth/authorize", "/login/oauth/access_token"
DENIED = "access_denied"
ERRORS = {
    "bad_verification_code": "The code passed is incorrect or expired.",
    WRONG_CLIENT: "The client_id and/or client_secret passed are incorrect.",
    WRONG_REDIRECT: "The redirect_uri MUST match the registered callback URL for this application.",
    DENIED: "The user has denied your application access.",
}
ERROR_PAGES = "https://docs.github.com/apps/managing-oauth-apps/troubleshooting-oauth-app-access-token-request-errors/"


def add_routes(application: web.Application, github: GitHubState) -> None:
    """Add the pages to the server."""

    async def ask(request: web.Request) -> web.Response:
        app = _app(github, request.query)
        if app is None:
            return web.Response(status=404, text="Not Found")
        if _redirect(app, request.query) is None:
            return _back(app.callback_urls[0], {**_error(WRONG_REDIRECT), "state": request.query.get("state", "")})
        return web.Response(text=_page(github, app, request.query), content_type="text/html", charset="utf-8")

    async def decide(request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        app = _app(github, form)
        redirect = _redirect(app, form) if app else None
        if app is None or redirect is None:
            return web.Response(status=404, text="Not Found")
        login = form.get("by", "")
        if login.lower() not in github.users:
            return _back(redirect, {**_error(DENIED), "state": form.get("state", "")})
        code = github.sign_ins.authorize(app, github.user(login), redirect, form.get("code_challenge", ""))
        return _back(redirect, {"code": code, "state": form.get("state", "")})

    async def exchange(request: web.Request) -> web.Response:
        record = Request("POST", ACCESS_TOKEN, request.path, "none", github.clock.now())
        github.requests.add(record)
        form = {name: str(value) for name, value in (await request.post()).items()}
        answer = _exchanged(github, form)
        github.requests.finish(record, 200)
        if "application/json" in request.headers.get("Accept", ""):
            return web.json_response(answer)
        return web.Response(text=urlencode(answer), content_type="application/x-www-form-urlencoded")

    application.router.add_get(AUTHORIZE, ask)
    application.router.add_post(AUTHORIZE, decide)
    application.router.add_post(ACCESS_TOKEN, exchange)


def client_of(github: GitHubState, client_id: str, client_secret: str) -> App | None:
    """Return the App with these credentials, None for wrong ones."""
    app = _app(github, {"client_id": client_id})
    fits = app is not None and hmac.compare_digest(app.client_secret.encode(), client_secret.encode())
    return app if fits else None


def _exchanged(github: GitHubState, form: Mapping[str, str]) -> dict[str, object]:
    app = client_of(github, form.get("client_id", ""), form.get("client_secret", ""))
    if app is None:
        return _error(WRONG_CLIENT)
    try:
        token = github.sign_ins.exchange(
            app, form.get("code", ""), form.get("redirect_uri", ""), form.get("code_verifier", "")
        )
    except SignInError as error:
        return _error(str(error))
    answer: dict[str, object] = {"access_token": token.value, "scope": "", "token_type": "bearer"}
    if token.expires_at is not None:
        answer |= {
            "expires_in": int(PERSON_TOKEN_LIFETIME.total_seconds()),
            "refresh_token": f"ghr_{token.value[4:]}",
            "refresh_token_expires_in": int(REFRESH_TOKEN_LIFETIME.total_seconds()),
        }
    return answer


def _app(github: GitHubState, fields: Mapping[str, str]) -> App | None:
    client_id = fields.get("client_id")
    return next((app for app in github.apps.values() if app.client_id == client_id), None)


def _redirect(app: App, fields: Mapping[str, str]) -> str | None:
    """Return the address to which a person is sent back; None if it is not registered."""
    address = fields.get("redirect_uri") or app.callback_urls[0]
    return address if address in app.callback_urls else None


def _error(kind: str) -> dict[str, object]:
    return {"error": kind, "error_description": ERRORS[kind], "error_uri": f"{ERROR_PAGES}#{kind.replace('_', '-')}"}


def _back(redirect: str, query: Mapping[str, object]) -> web.Response:
    joined = "&" if "?" in redirect else "?"
    return web.Response(status=302, headers={"Location": f"{redirect}{joined}{urlencode(query)}"})


def _page(github: GitHubState, app: App, query: Mapping[str, str]) -> str:
    hidden = "".join(
        f'<input type="hidden" name="{escape(name)}" value="{escape(value)}">' for name, value in query.items()
    )
    people = [account for account in github.users.values() if account.type == "User"]
    buttons = "".join(
        f'<button name="by" value="{escape(account.login)}">@{escape(account.login)}</button> ' for account in people
    )
    content = (
        f"<h1>Authorize {escape(app.slug)}</h1><p>Who are you? Nobody needs a password here.</p>"
        f'<form method="post" action="{AUTHORIZE}">{hidden}{buttons}<button name="by" value="">Cancel</button></form>'
    )
    return frame("Authorize", [], content)
