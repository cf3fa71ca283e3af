"""Cache rendered pages until their content changes.

A page says what its content depends on: the revision of the data, and the moment that it is about. Answers are stored
under that and their address. Nothing is stored for whoever sends a cookie or a token: what is here, everybody may read.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import hdrs, web
from cachetools import LRUCache

MOST_BYTES = 32 * 1024 * 1024
LARGEST = 1024 * 1024
"""Bytes of one answer; a larger one is made each time."""
MOST_TAGS = 20_000
"""Tags outlive their answers, for a browser that has the page needs no more."""


@dataclass(frozen=True, slots=True)
class RenderedPage:
    """A page as it is sent: its bytes, the same compressed if that is worthwhile, and the tag of its content."""

    body: bytes
    compressed: bytes | None
    tag: str

    @property
    def size(self) -> int:
        """Its size in memory, in bytes."""
        return len(self.body) + len(self.compressed or b"")


def is_anonymous(request: web.Request) -> bool:
    """Say whether a request is answered as any other one for the same address: it does not say who sends it."""
    return hdrs.COOKIE not in request.headers and hdrs.AUTHORIZATION not in request.headers


def answer_key(request: web.Request, kind: str, content: object) -> bytes:
    """Return the key of an answer of some kind to an anonymous request; `content` is what it depends on."""
    return hashlib.blake2b(repr((kind, request.raw_path, content)).encode(), digest_size=16).digest()


class PageCache:
    """The most recently used answers, in bounded memory. For one event loop."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._pages: LRUCache[bytes, RenderedPage] = LRUCache(most_bytes, getsizeof=lambda page: page.size)
        self._tags: LRUCache[bytes, str] = LRUCache(MOST_TAGS)
        self._making: dict[bytes, asyncio.Task[RenderedPage]] = {}

    def tag(self, key: bytes) -> str | None:
        """Return the tag of an earlier answer."""
        return self._tags.get(key)

    async def page(self, key: bytes, make: Callable[[], Awaitable[RenderedPage]]) -> RenderedPage:
        """Return an answer; it is made once, however many ask for it meanwhile. Raises what `make` raises."""
        found = self._pages.get(key)
        if found is not None:
            return found
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.ensure_future(self._made(key, make))
        # A client that disconnects must not cancel the work for the others.
        return await asyncio.shield(making)

    async def _made(self, key: bytes, make: Callable[[], Awaitable[RenderedPage]]) -> RenderedPage:
        try:
            page = await make()
            self._tags[key] = page.tag
            if page.size <= LARGEST:
                self._pages[key] = page
            return page
        finally:
            del self._making[key]
