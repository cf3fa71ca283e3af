"""Simultaneous requests are sent together, and a failing one does not affect the others."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from bot.engine.postgres.batches import MOST, Batcher
from tests.patient_loop import advance

PATIENCE = 60.0


class Down(Exception):
    """The error of a server that cannot be reached."""


class Server:
    """A server that records its batches, and answers when the test lets it."""

    def __init__(self) -> None:
        self.batches: list[list[int]] = []
        self.may_answer = asyncio.Event()
        self.refused: set[int] = set()
        self.down = False

    async def answer(self, numbers: Sequence[int]) -> list[str]:
        self.batches.append(list(numbers))
        await self.may_answer.wait()
        if self.down:
            raise Down
        if self.refused.intersection(numbers):
            raise ValueError(numbers)
        return [str(number) for number in numbers]

    def batcher(self) -> Batcher[int, str]:
        return Batcher(self.answer, lambda error: isinstance(error, Down), PATIENCE)


async def start_calls(batcher: Batcher[int, str], numbers: Sequence[int]) -> list[asyncio.Task[str]]:
    tasks = [asyncio.create_task(batcher.call(number)) for number in numbers]
    for _ in range(5):
        await asyncio.sleep(0)
    return tasks


async def test_requests_during_a_batch_share_the_next_one() -> None:
    server = Server()
    batcher = server.batcher()
    tasks = await start_calls(batcher, [1, 2]) + await start_calls(batcher, [3]) + await start_calls(batcher, [4, 5])
    assert server.batches == [[1, 2]]
    server.may_answer.set()
    assert await asyncio.gather(*tasks) == ["1", "2", "3", "4", "5"]
    assert server.batches == [[1, 2], [3, 4, 5]]
    assert await batcher.call(6) == "6"


async def test_a_batch_has_a_limit() -> None:
    server = Server()
    server.may_answer.set()
    await asyncio.gather(*await start_calls(server.batcher(), range(2 * MOST + 1)))
    assert [len(numbers) for numbers in server.batches] == [MOST, MOST, 1]


async def test_a_refused_request_does_not_affect_the_others() -> None:
    server = Server()
    server.refused = {2}
    server.may_answer.set()
    answers = await asyncio.gather(*await start_calls(server.batcher(), [1, 2, 3]), return_exceptions=True)
    assert [answers[0], type(answers[1]), answers[2]] == ["1", ValueError, "3"]
    assert server.batches == [[1, 2, 3], [1], [2], [3]]


async def test_while_the_server_is_down_nothing_is_tried_one_by_one() -> None:
    server = Server()
    server.down = True
    server.may_answer.set()
    answers = await asyncio.gather(*await start_calls(server.batcher(), [1, 2, 3]), return_exceptions=True)
    assert ([type(answer) for answer in answers], server.batches) == ([Down] * 3, [[1, 2, 3]])


async def test_the_request_of_a_caller_who_gave_up_is_not_sent() -> None:
    server = Server()
    batcher = server.batcher()
    (first,) = await start_calls(batcher, [1])
    second, third = await start_calls(batcher, [2, 3])
    second.cancel()
    server.may_answer.set()
    assert [await first, await third] == ["1", "3"]
    assert server.batches == [[1], [3]]


async def test_a_batch_that_hangs_times_out_and_the_next_one_begins() -> None:
    server = Server()
    batcher = server.batcher()
    (hanging,) = await start_calls(batcher, [1])
    advance(PATIENCE)
    with pytest.raises(TimeoutError):
        await hanging
    server.may_answer.set()
    assert await batcher.call(2) == "2"
