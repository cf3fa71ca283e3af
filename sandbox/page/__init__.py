"""Pages that show pull requests as a person would see them on GitHub."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aiohttp import web

if TYPE_CHECKING:
    from sandbox.github import GitHubSandbox


def add_routes(application: web.Application, github: GitHubSandbox) -> None:
    """Add the pages to the server."""
