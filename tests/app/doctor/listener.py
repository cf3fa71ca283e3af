"""A server that gives every webhook the same answer."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiohttp import web

from tests.serving import served


@asynccontextmanager
async def refusing(status: int) -> AsyncIterator[str]:
    """Answer everything with `status`; yield the address."""

    async def answer(_: web.Request) -> web.Response:
        return web.Response(status=status)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    async with served(app) as url:
        yield url
