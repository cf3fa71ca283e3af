"""Cache rendered pages until their content changes.

A page says what its content depends on: the revision of the data, and the time for which it is shown. The key of an
answer is made of that, of its address, and of the role of its reader. An answer to somebody who is signed in is stored
without their name and their form token, and only people who may read the repository get it. Answers to requests with a
token are not stored.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cachetools import LRUCache

MOST_BYTES = 32 * 1024 * 1024
LARGEST = 1024 * 1024
"""Bytes of one answer. A larger answer is not cached."""
MOST_TAGS = 20_000
"""Tags outlive their answers: a tag is enough to answer a browser that has the page."""


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


def answer_key(address: str, kind: str, content: object) -> bytes:
    """Return the key of an answer. `kind` is its media type; it depends on `content`.

    `address` is the same for all spellings of an address: otherwise each spelling would have its page rendered.
    """
    return hashlib.blake2b(repr((kind, address, content)).encode(), digest_size=16).digest()


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
        """Return the cached answer, or make it, once for all simultaneous requests. Raises what `make` raises."""
        cached_page = self._pages.get(key)
        if cached_page is not None:
            return cached_page
        making = self._making.get(key)
        if making is None:
            making = self._making[key] = asyncio.ensure_future(self._make(key, make))
        # A client that disconnects must not cancel the work for the others.
        return await asyncio.shield(making)

    async def _make(self, key: bytes, make: Callable[[], Awaitable[RenderedPage]]) -> RenderedPage:
        try:
            page = await make()
            self._tags[key] = page.tag
            if page.size <= LARGEST:
                self._pages[key] = page
            return page
        finally:
            del self._making[key]
