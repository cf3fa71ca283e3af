"""Answers are rendered once for everybody until their content changes, and every time for signed-in readers."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from bot.web.page_cache import LARGEST, PageCache, RenderedPage


def page_of(size: int, tag: str = "tag") -> RenderedPage:
    return RenderedPage(bytes(size), None, tag)


class Making:
    """Renders answers when allowed to, and counts them."""

    def __init__(self, page: RenderedPage) -> None:
        self.count = 0
        self.allowed = asyncio.Event()
        self._page = page

    async def __call__(self) -> RenderedPage:
        self.count += 1
        await self.allowed.wait()
        return self._page


async def test_requests_during_the_rendering_of_an_answer_wait_for_it() -> None:
    cache, making = PageCache(), Making(page_of(10))
    asking = [asyncio.ensure_future(cache.page(b"key", making)) for _ in range(3)]
    await asyncio.sleep(0)
    asking[0].cancel()
    making.allowed.set()
    assert [page.tag for page in await asyncio.gather(*asking[1:])] == ["tag", "tag"]
    await cache.page(b"key", making)
    assert making.count == 1
    assert cache.tag(b"key") == "tag"


async def test_a_failed_rendering_is_tried_again() -> None:
    cache = PageCache()

    async def fails() -> RenderedPage:
        raise LookupError

    for _ in range(2):
        with pytest.raises(LookupError):
            await cache.page(b"key", fails)
    assert cache.tag(b"key") is None


async def test_memory_is_limited_and_tags_outlive_their_answers() -> None:
    cache = PageCache(most_bytes=3 * LARGEST)
    made = list[int]()

    def make(number: int, size: int) -> Callable[[], Awaitable[RenderedPage]]:
        async def make_it() -> RenderedPage:
            made.append(number)
            return page_of(size, str(number))

        return make_it

    for number in range(5):
        await cache.page(bytes([number]), make(number, LARGEST))
    await cache.page(b"large", make(9, LARGEST + 1))
    await cache.page(b"large", make(9, LARGEST + 1))
    await cache.page(bytes([0]), make(0, LARGEST))
    await cache.page(bytes([4]), make(4, LARGEST))
    assert made == [0, 1, 2, 3, 4, 9, 9, 0]
    assert cache.tag(bytes([1])) == "1"
