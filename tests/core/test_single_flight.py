"""Expensive answers are requested once, and reused only while they are valid."""

from __future__ import annotations

import asyncio

import pytest

from bot.core.errors import TryAgain
from bot.core.single_flight import Remembered
from tests.waiting import until


class Source:
    """A source that counts its requests."""

    def __init__(self) -> None:
        self.asked = 0
        self.now = 0.0
        self.broken = False
        self.answering = asyncio.Event()
        self.answering.set()
        self.remembered: Remembered[str, int] = Remembered(lambda answer: 100 * answer, lambda _: 10, lambda: self.now)

    async def _answer(self) -> int:
        self.asked = answer = self.asked + 1
        await self.answering.wait()
        await asyncio.sleep(0)
        if self.broken:
            raise TryAgain("not now")
        return answer

    async def get(self, key: str = "a") -> int:
        return await self.remembered.get(key, self._answer)


async def test_concurrent_requests_share_one_answer() -> None:
    source = Source()
    assert await asyncio.gather(*(source.get() for _ in range(30))) == [1] * 30
    assert await source.get("b") == 2


async def test_an_answer_lasts_as_long_as_it_says() -> None:
    source = Source()
    assert await source.get() == 1
    source.now = 99
    assert await source.get() == 1
    source.now = 100
    assert await source.get() == 2
    source.now = 299
    assert await source.get() == 2


async def test_an_error_is_cached_only_briefly() -> None:
    source = Source()
    source.broken = True
    for _ in range(3):
        with pytest.raises(TryAgain):
            await source.get()
    assert source.asked == 1
    source.now, source.broken = 10, False
    assert await source.get() == 2


async def test_an_answer_that_is_forgotten_before_it_arrives_is_not_cached() -> None:
    source = Source()
    source.answering.clear()
    earlier_call = asyncio.ensure_future(source.get())
    await until(lambda: source.asked)
    source.remembered.forget("a")
    later_call = asyncio.ensure_future(source.get())
    source.answering.set()
    assert (await later_call, await earlier_call) == (2, 1)
    assert await source.get() == 2
