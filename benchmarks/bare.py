"""A bare aiohttp handler to compare with: it verifies the signature, and does nothing else.

`python -m benchmarks.bare` prints its port and serves until standard input ends.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AbstractAsyncContextManager

from aiohttp import web

from benchmarks import processes
from benchmarks.webhook_server import serve


def serving() -> AbstractAsyncContextManager[int]:
    """Run the handler in its own process; yields the port."""
    return processes.serving(sys.executable, "-m", "benchmarks.bare")


async def _ignore(_request: web.Request, _body: bytes) -> None:
    """Do nothing."""


if __name__ == "__main__":
    asyncio.run(serve(_ignore))
