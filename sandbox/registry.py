"""A simulated Docker Hub on this machine, over real HTTP: the tags of images, with the times of their pushes.

https://docs.docker.com/reference/api/hub/latest/#tag/repositories
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from sandbox.faults import Faults

Json = dict[str, Any]
NOT_FOUND = {"message": "object not found", "errinfo": {}}


class RegistrySandbox:
    """Images by `namespace/name`, with their tags. `requests` has the paths of all requests.

    Routes of `faults` are patterns for the path, or `*`.
    """

    def __init__(self) -> None:
        self.faults = Faults()
        self.images: dict[str, dict[str, str | None]] = {}
        self.requests: list[str] = []
        self.pages: dict[str, str] = {}
        """Bodies that replace the answers for some paths."""
        self.url = ""

    def push(self, name: str, tag: str, pushed_at: str | None = "2026-11-20T00:00:00.123456Z") -> None:
        """Push an image; `pushed_at` is the time as Docker Hub writes it."""
        self.images.setdefault(name, {})[tag] = pushed_at

    @asynccontextmanager
    async def serve(self) -> AsyncIterator[str]:
        """Serve while the block runs; yields the address."""
        application = web.Application()
        application.router.add_route("*", "/{rest:.*}", self._answer)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
            yield self.url
        finally:
            await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.Response:
        self.requests.append(request.path_qs)
        fault = self.faults.take(request.method, request.path, request.path)
        if fault is not None and await fault.strike("before", request.transport):
            return _answer({"message": fault.message}, fault.status or 500, dict(fault.headers))
        if request.path in self.pages:
            return web.Response(text=self.pages[request.path])
        parts = request.path.strip("/").split("/")
        if request.method != "GET" or parts[:2] != ["v2", "repositories"] or len(parts) not in (5, 6):
            return _answer(NOT_FOUND, 404)
        tags = self.images.get("/".join(parts[2:4]))
        if tags is None or parts[4] != "tags" or (len(parts) == 6 and parts[5] not in tags):
            return _answer(NOT_FOUND, 404)
        if len(parts) == 6:
            return _answer(_tag(parts[5], tags[parts[5]]))
        return _answer(self._page(request, tags))

    def _page(self, request: web.Request, tags: dict[str, str | None]) -> Json:
        """Return one page of tags, most recently pushed first."""
        size, page = (int(request.query.get(name, usual)) for name, usual in (("page_size", 10), ("page", 1)))
        newest = sorted(tags.items(), key=lambda tag: tag[1] or "", reverse=True)
        page_of_tags = newest[(page - 1) * size : page * size]
        next_page = f"{self.url}{request.path}?page={page + 1}" if page * size < len(newest) else None
        listed = [_tag(name, pushed_at) for name, pushed_at in page_of_tags]
        return {"count": len(newest), "next": next_page, "previous": None, "results": listed}


def _tag(name: str, pushed_at: str | None) -> Json:
    return {"name": name, "last_updated": pushed_at, "tag_status": "active", "full_size": 1}


def _answer(body: Json, status: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(text=json.dumps(body), status=status, headers=headers, content_type="application/json")
