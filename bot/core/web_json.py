"""Read JSON from web services other than GitHub."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import aiohttp
from nightjar_formats.strict_json import read_json
from yarl import URL

from bot.core.errors import TryAgain, UserError
from bot.core.parts import PartKey

TIMEOUT = aiohttp.ClientTimeout(total=30, sock_connect=5)
"""Seconds for one answer."""
LONGEST_PAUSE = 7 * 86_400.0
"""Seconds of the longest pause that a header may name."""
LARGEST = 4 * 1024 * 1024
"""Bytes of an answer that are read."""

AWAY = "{host} did not answer ({problem})"
BROKEN = "{host} answered {status} to GET {path}"
BUSY = "{host} is limiting our requests for now"
REFUSED = "{host} answered {status} to GET {path}; ask its administrator why"
MOVED = "{host} redirects GET {path}, and the bot follows no redirects here; name the final address"
NOT_JSON = "{host} did not answer with JSON to GET {path}; name the address of its API"
TOO_LONG = "{host} answered GET {path} with more than {limit:,} bytes"


class Reader:
    """Reads from configured web addresses. `clock` returns seconds since 1970."""

    def __init__(self, session: aiohttp.ClientSession, *, clock: Callable[[], float] = time.time) -> None:
        self._session = session
        self._clock = clock

    async def json(
        self,
        url: str,
        *,
        headers: Mapping[str, str] | None = None,
        within: aiohttp.ClientTimeout = TIMEOUT,
        limit: int = LARGEST,
    ) -> Any:
        """Return the JSON at an address, None if there is nothing (404); no redirection is followed.

        `limit` is how many bytes are read, `within` how long it may take.

        Raises `TryAgain` if another try may succeed (no answer, 429, 5xx), `UserError` for every other answer.
        """
        # Send the address as written: yarl would decode an escaped slash, for example, and request another path.
        address = URL(url, encoded=True)
        words: dict[str, object] = {"host": address.host, "path": address.path}
        try:
            async with self._session.get(address, headers=headers, allow_redirects=False, timeout=within) as response:
                words["status"] = response.status
                if response.status == 404:
                    return None
                if response.status != 200:
                    problem = self._problem(response, words)
                else:
                    return _decoded(await read_body(response, limit), words, limit)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            problem = TryAgain(AWAY.format(**words, problem=type(error).__name__))
        # Raise outside the `except`: aiohttp's errors hold the request's headers, perhaps with a password.
        raise problem

    def _problem(self, response: aiohttp.ClientResponse, words: dict[str, object]) -> Exception:
        if response.status == 429:
            return TryAgain(BUSY.format(**words), retry_in=self._pause(response))
        if response.status >= 500:
            return TryAgain(BROKEN.format(**words), retry_in=seconds_in(response.headers.get("Retry-After")))
        return UserError((MOVED if response.status < 400 else REFUSED).format(**words))

    def _pause(self, response: aiohttp.ClientResponse) -> float | None:
        """Return the seconds to wait, None if the answer names none; Docker Hub names the time at which a pause ends.

        https://docs.docker.com/reference/api/hub/latest/#tag/rate-limiting
        """
        wait = seconds_in(response.headers.get("Retry-After"))
        until = _number_in(response.headers.get("X-Retry-After"))
        return wait if wait is not None or until is None else min(max(0.0, until - self._clock()), LONGEST_PAUSE)


READER = PartKey[Reader]("reader")
"""Reads from configured addresses, except GitHub's."""

HTTP = PartKey[aiohttp.ClientSession]("http")


async def read_body(response: aiohttp.ClientResponse, limit: int) -> bytes:
    """Return the body of an answer, or the beginning of one that is longer than `limit` bytes."""
    # Reading one byte more than the limit shows whether the body is too long.
    body = bytearray()
    while len(body) <= limit and (chunk := await response.content.read(limit + 1)):
        body += chunk
    return bytes(body)


def _decoded(body: bytes, words: dict[str, object], limit: int) -> Any:
    if len(body) > limit:
        raise UserError(TOO_LONG.format(**words, limit=limit))
    try:
        return read_json(body)
    except ValueError:
        pass
    raise UserError(NOT_JSON.format(**words))


def seconds_in(retry_after: str | None) -> float | None:
    """Return the seconds that a `Retry-After` header names, at most a week; None for a date."""
    seconds = _number_in(retry_after)
    return None if seconds is None else min(seconds, LONGEST_PAUSE)


def _number_in(header: str | None) -> float | None:
    return float(header) if header is not None and header.strip().isdecimal() else None
