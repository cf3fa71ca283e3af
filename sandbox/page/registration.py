"""The pages on which a person creates an App from a manifest, and installs it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from html import escape
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from aiohttp import web

from sandbox.manifests import read_manifest
from sandbox.model.apps import App

from .layout import frame

if TYPE_CHECKING:
    from sandbox.state import GitHubState

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
NEW_APP = "/settings/apps/new"
SIGNED_IN = "octocat"
"""The person who is signed in on these pages."""


def add_registration_routes(application: web.Application, github: GitHubState, unknown: Handler) -> None:
    """Add the pages to the server."""
    for path in (NEW_APP, f"/organizations/{{owner}}{NEW_APP}"):
        application.router.add_post(path, _new_app(github))
    application.router.add_get("/apps/{slug}/installations/new", _install(github, unknown))
    application.router.add_post("/apps/{slug}/installations/new", _install(github, unknown))


def _new_app(github: GitHubState) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        form = await request.post()
        text, pressed = str(form.get("manifest", "")), "create" in form
        owner = request.match_info.get("owner", SIGNED_IN)
        manifest, problems = read_manifest(text)
        name = str(form.get("name", manifest.get("name", "")))
        if not problems and pressed:
            problems = [problem for problem in [github.manifests.name_problem(name)] if problem]
        if problems or not pressed:
            page = _confirmation(request, owner, name, text, problems)
            return web.Response(text=page, content_type="text/html", status=422 if problems else 200)
        code = github.manifests.create(json.loads(text), name, owner)
        query = {"code": code, **({"state": request.query["state"]} if "state" in request.query else {})}
        raise web.HTTPFound(f"{manifest['redirect_url']}?{urlencode(query)}")

    return handle


def _confirmation(request: web.Request, owner: str, name: str, manifest: str, problems: list[str]) -> str:
    problem_list = "".join(f'<p class="bad">{escape(problem)}</p>' for problem in problems)
    content = (
        f"<h1>Create GitHub App for {escape(owner)}</h1>{problem_list}"
        f'<form method="post" action="{escape(str(request.rel_url))}">'
        f'<input type="hidden" name="manifest" value="{escape(manifest)}">'
        f'<label>GitHub App name <input name="name" value="{escape(name)}"></label> '
        f"<button name=create value=1>Create GitHub App for {escape(owner)}</button></form>"
    )
    return frame("Create GitHub App", [], content)


def _install(github: GitHubState, unknown: Handler) -> Handler:
    async def handle(request: web.Request) -> web.StreamResponse:
        app = next((app for app in github.apps.values() if app.slug == request.match_info["slug"]), None)
        if app is None:
            return await unknown(request)
        chosen: list[str] = []
        if request.method == "POST":
            chosen = [str(name) for name in (await request.post()).getall("repository", [])]
            app.install(*(github.repositories[name.lower()] for name in chosen))
        return web.Response(text=_installing(github, app, chosen), content_type="text/html")

    return handle


def _installing(github: GitHubState, app: App, chosen: list[str]) -> str:
    names = [repository.full_name for repository in github.repositories.values() if repository.owner is app.owner]
    boxes = "".join(
        f'<p><label><input type="checkbox" name="repository" value="{escape(name)}"> {escape(name)}</label></p>'
        for name in names
    )
    confirmation = f'<p class="good">Installed on {escape(", ".join(chosen))}</p>' if chosen else ""
    content = (
        f'<h1>Install {escape(app.slug)}</h1>{confirmation}<form method="post">{boxes}<button>Install</button></form>'
    )
    return frame(f"Install {app.slug}", [], content)
