"""The part that all aiohttp servers to compare with share: they verify a webhook's signature before they handle it."""

from __future__ import annotations

import asyncio
import hmac
import sys
from collections.abc import Awaitable, Callable

from aiohttp import web

from benchmarks.traffic import SECRET

Handle = Callable[[web.Request, bytes], Awaitable[None]]


async def serve(handle: Handle) -> None:
    """Print a free port, and serve at it until standard input ends; `handle` gets each signed webhook with its body."""

    async def answer(request: web.Request) -> web.Response:
        body = await request.read()
        expected = f"sha256={hmac.digest(SECRET.encode(), body, 'sha256').hex()}"
        if not hmac.compare_digest(request.headers.get("X-Hub-Signature-256", ""), expected):
            return web.Response(status=401)
        await handle(request, body)
        return web.Response(status=202)

    application = web.Application()
    application.router.add_post("/webhook", answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()
