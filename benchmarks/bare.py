"""A bare aiohttp handler to compare with: it verifies the signature, and does nothing else.

`python -m benchmarks.bare` prints its port and serves until standard input ends.
"""

from __future__ import annotations

import asyncio
import hmac
import sys
from contextlib import AbstractAsyncContextManager

from aiohttp import web

from benchmarks import processes
from benchmarks.traffic import SECRET


def serving() -> AbstractAsyncContextManager[int]:
    """Run the handler in its own process; yields the port."""
    return processes.serving(sys.executable, "-m", "benchmarks.bare")


async def _answer(request: web.Request) -> web.Response:
    body = await request.read()
    expected = f"sha256={hmac.digest(SECRET.encode(), body, 'sha256').hex()}"
    if not hmac.compare_digest(request.headers.get("X-Hub-Signature-256", ""), expected):
        return web.Response(status=401)
    return web.Response(status=202)


async def _serve() -> None:
    application = web.Application()
    application.router.add_post("/webhook", _answer)
    runner = web.AppRunner(application, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


if __name__ == "__main__":
    asyncio.run(_serve())
