"""Download a file from where GitHub redirects to, such as the artifact of a workflow run."""

from __future__ import annotations

from typing import TYPE_CHECKING, BinaryIO

import aiohttp

from bot.github.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

# A large artifact may take minutes; half a minute without a byte means a dead connection.
TIMEOUT = aiohttp.ClientTimeout(total=300, sock_connect=5, sock_read=30)
CHUNK = 1 << 18
LABEL = "a file that GitHub redirects to"


class TooLong(Exception):
    """The file is larger than the caller allows."""


async def fetch(session: aiohttp.ClientSession, url: str, file: BinaryIO, *, limit: int) -> None:
    """Download a URL into a file, `limit` bytes at most. Raises `TooLong` or `Unavailable`.

    Sends no credentials, because the URL itself contains some. For the same reason, no error names the URL.
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
        # Raise outside the `except`: aiohttp's errors contain the URL.
        raise Unavailable(f"GET {LABEL}: {problem}")


async def _write(chunks: AsyncIterator[bytes], file: BinaryIO, limit: int) -> None:
    size = 0
    async for chunk in chunks:
        size += len(chunk)
        if size > limit:
            raise TooLong(f"more than {limit:,} bytes")
        file.write(chunk)
