"""The queue for a place, and cancelled calls in it."""

from __future__ import annotations

import asyncio

import pytest

from bot.core.errors import TryAgain
from bot.core.untrusted.limits import MOST_WAITING_OF_OWNER
from bot.core.untrusted.queue import Owner, Turns
from tests.waiting import DEADLINE

ME, OTHER = Owner("octocat/compiler", "1"), Owner("octocat/compiler", "2")


async def full(turns: Turns) -> list[asyncio.Task[None]]:
    """Let one owner wait in as many places as allowed."""
    tasks = [asyncio.create_task(turns.take(ME)) for _ in range(MOST_WAITING_OF_OWNER)]
    await asyncio.sleep(0)
    with pytest.raises(TryAgain):
        turns.check(ME)
    return tasks


async def test_a_cancelled_call_makes_room_for_others_at_once() -> None:
    turns = Turns(1)
    await turns.take(ME)
    tasks = await full(turns)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert turns.waiting == 0
    turns.check(ME)


async def test_a_call_cancelled_in_the_middle_of_a_queue_leaves_the_order_of_the_others() -> None:
    turns, order = Turns(1), list[int]()
    await turns.take(ME)

    async def take(number: int) -> None:
        await turns.take(ME)
        order.append(number)
        turns.give_back(ME)

    tasks = [asyncio.create_task(take(number)) for number in range(3)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    turns.give_back(ME)
    await asyncio.gather(*tasks, return_exceptions=True)
    assert order == [0, 2]
    assert turns.waiting == 0


async def test_a_call_that_gets_a_place_while_it_is_cancelled_returns_it() -> None:
    turns = Turns(1)
    await turns.take(ME)
    late = asyncio.create_task(turns.take(OTHER))
    await asyncio.sleep(0)
    turns.give_back(ME)
    late.cancel()
    await asyncio.gather(late, return_exceptions=True)
    await asyncio.wait_for(turns.take(ME), DEADLINE)
