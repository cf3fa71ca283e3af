"""Fetch a file that GitHub keeps elsewhere and redirects to, such as the artifact of a workflow run."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import aiohttp

from bot.github.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# A large artifact may take minutes; half a minute without a byte means a dead connection.
TIMEOUT = aiohttp.ClientTimeout(total=300, sock_connect=5, sock_read=30)
CHUNK = 1 << 18
WHAT = "a file that GitHub redirects to"


class TooLong(Exception):
    """The file has more bytes than were to be read."""


async def fetch(session: aiohttp.ClientSession, url: str, file: BinaryIO, *, limit: int) -> None:
    """Write what is at an address to a file, `limit` bytes at most. Raises `TooLong`, or `Unavailable`.

    It sends no credentials, because the address itself holds some; so no error names the address.
    """
    problem = ""
    try:
        async with session.get(url, timeout=TIMEOUT, allow_redirects=False) as response:
            if response.status != 200:
                problem = f"the answer was {response.status}"
            else:
                await _write(response.content.iter_chunked(CHUNK), file, limit)
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        problem = f"no answer ({type(error).__name__})"
    if problem:
        # Raise outside the `except`: aiohttp's errors hold the address.
        raise Unavailable(f"GET {WHAT}: {problem}")


async def _write(chunks: AsyncIterator[bytes], file: BinaryIO, limit: int) -> None:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise TooLong(f"more than {limit:,} bytes")
        file.write(chunk)
