"""The store outside the API to which GitHub redirects downloads of artifacts.

https://docs.github.com/rest/actions/artifacts
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

from sandbox.journal import Request, Violation
from sandbox.model.workflows import STORE

if TYPE_CHECKING:
    from sandbox.state import GitHubState


def add_routes(application: web.Application, github: GitHubState) -> None:
    """Add the store to the server."""

    async def download(request: web.Request) -> web.Response:
        record = Request("GET", STORE, request.path, "none", github.clock.now())
        github.requests.add(record)
        if "Authorization" in request.headers:
            # Azure's store refuses a request with credentials; they would reveal GitHub's token to another service.
            github.violations.append(Violation("request", f"GET {STORE}", "credentials were sent to another server"))
        artifacts = {
            artifact.id: artifact for repository in github.repositories.values() for artifact in repository.artifacts
        }
        artifact = artifacts.get(int(request.match_info["artifact"]))
        until = artifact.tickets.get(request.match_info["ticket"]) if artifact else None
        fits = artifact is not None and until is not None and github.clock.now() <= until
        github.requests.finish(record, 200 if fits else 403)
        if artifact is None or not fits:
            return web.Response(status=403, text="<Error><Code>AuthenticationFailed</Code></Error>")
        return web.Response(body=artifact.content, content_type="application/zip")

    application.router.add_get(STORE, download)
