"""Artifacts of workflow runs, and the store outside of the API that downloads of them are sent to.

https://docs.github.com/rest/actions/artifacts
"""

from __future__ import annotations

import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from aiohttp import web

from .journal import Request, Violation
from .users import node_id

if TYPE_CHECKING:
    from .github import GitHubSandbox
    from .workflows import WorkflowRun

STORE = "/artifact-store/{artifact}/{ticket}"
RETENTION = timedelta(days=90)
LINK_LASTS = timedelta(minutes=1)


@dataclass(eq=False)
class Artifact:
    """A zip archive that a run has uploaded. An expired one is still listed, but removed."""

    id: int
    run: WorkflowRun
    name: str
    content: bytes
    created_at: datetime
    expired: bool = False
    tickets: dict[str, datetime] = field(default_factory=dict)

    @property
    def node_id(self) -> str:
        """Return the GraphQL id."""
        return node_id("A", self.id)

    @property
    def expires_at(self) -> datetime:
        """Return when it is removed."""
        return self.created_at + RETENTION

    @property
    def digest(self) -> str:
        """Return what GitHub shows of its content."""
        return f"sha256:{hashlib.sha256(self.content).hexdigest()}"

    def link(self) -> str:
        """Return an address that leads to the content for a minute, without credentials."""
        github = self.run.repository.github
        ticket = f"ticket-{len(self.tickets) + 1}"
        self.tickets[ticket] = github.clock.now() + LINK_LASTS
        return github.url + STORE.format(artifact=self.id, ticket=ticket)


def zipped(files: Mapping[str, bytes | str]) -> bytes:
    """Return a zip archive of files by their names."""
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


def add_routes(application: web.Application, github: GitHubSandbox) -> None:
    """Add the store to the server."""

    async def download(request: web.Request) -> web.Response:
        record = Request("GET", STORE, request.path, "none", github.clock.now())
        github.requests.add(record)
        if "Authorization" in request.headers:
            # Azure's store refuses such a request, and it would have got a token that is not meant for it.
            github.violations.append(Violation("request", f"GET {STORE}", "credentials were sent to another server"))
        known = {artifact.id: artifact for one in github.repositories.values() for artifact in one.artifacts}
        found = known.get(int(request.match_info["artifact"]))
        until = found.tickets.get(request.match_info["ticket"]) if found else None
        fits = found is not None and until is not None and github.clock.now() <= until
        github.requests.finish(record, 200 if fits else 403)
        if found is None or not fits:
            return web.Response(status=403, text="<Error><Code>AuthenticationFailed</Code></Error>")
        return web.Response(body=found.content, content_type="application/zip")

    application.router.add_get(STORE, download)
