"""While GitHub's limits leave little room, writes about newer heads go first."""

from __future__ import annotations

import heapq
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest

from bot.engine.budget import WriteBudget
from bot.engine.database import Database
from bot.github.errors import RateLimited
from bot.github.limits.governor import Governor
from bot.github.limits.ledger import RETURNS_WITHIN, Allowance, Demand, HeadWrite, Ledger
from tests.github.virtual import JumpingTime

ALLOWANCE = Allowance(writes_per_minute=10, writes_per_hour=40, write_burst=5)
OLD, NEW, NEWEST = (HeadWrite(name, since) for name, since in (("old", 1.0), ("new", 2.0), ("newest", 3.0)))


def about(head: HeadWrite | None) -> Demand:
    return Demand(write=True, head=head)


def used_up(writes: int) -> Ledger:
    """Return a ledger after so many writes, one a second; the first was at 0."""
    ledger = Ledger(ALLOWANCE)
    for second in range(writes):
        ledger.book(float(second), Demand(write=True))
    return ledger


def test_an_older_head_leaves_room_for_newer_ones_that_wait() -> None:
    ledger, moment = used_up(9), 9.0
    assert ledger.earliest(moment, about(OLD))[0] == 60
    ledger.put_off(60.0, about(NEW))
    ledger.put_off(60.0, about(NEWEST))
    # The first three writes of this minute are over a minute old: one for each newer head, and one for this.
    assert [ledger.earliest(moment, about(head))[0] for head in (OLD, NEW, NEWEST)] == [62, 61, 60]
    # Writes about no head, such as an answer to a person, wait behind none of them.
    assert ledger.earliest(moment, about(None))[0] == 60
    ledger.book(60.0, about(NEWEST))
    assert ledger.earliest(60.0, about(OLD))[0] == 62, "NEW has the place at 61"
    ledger.book(61.0, about(NEW))
    assert ledger.earliest(62.0, about(OLD))[0] == 62


def test_the_room_includes_the_spacing_between_writes() -> None:
    ledger = Ledger(replace(ALLOWANCE, writes_per_minute=1000, writes_per_hour=1000))
    for _ in range(20):
        ledger.book(0.0, Demand(write=True))
    alone = ledger.earliest(0.0, about(OLD))[0]
    ledger.put_off(alone, about(NEW))
    ledger.put_off(alone, about(NEWEST))
    assert ledger.earliest(0.0, about(OLD))[0] == alone + 2
    assert ledger.earliest(0.0, about(NEWEST))[0] == alone


def test_a_write_that_does_not_come_back_delays_others_only_for_a_while() -> None:
    ledger = used_up(9)
    ledger.put_off(60.0, about(NEW))
    assert ledger.earliest(59.0, about(OLD))[0] == 61
    assert ledger.earliest(60.0 + RETURNS_WITHIN, about(OLD))[0] == 60.0 + RETURNS_WITHIN


async def order_of(governor: Governor, time: JumpingTime, heads: Sequence[HeadWrite]) -> list[HeadWrite]:
    """Write about these heads, each tried again when the governor says; return them in the order of their writes."""
    queue = [(time.now, number, head) for number, head in enumerate(heads)]
    written = []
    while queue:
        moment, number, head = heapq.heappop(queue)
        time.now = max(time.now, moment)
        try:
            async with governor.turn("42", about(head)):
                written.append(head)
        except RateLimited as limited:
            heapq.heappush(queue, (time.now + (limited.retry_in or 0.0), number, head))
    return written


@pytest.mark.parametrize("shared", [True, False])
async def test_waiting_writes_go_out_with_the_newest_head_before_older_ones(
    database: Database, jumping: JumpingTime, *, shared: bool
) -> None:
    budget = WriteBudget(database.connector, lambda: jumping.now) if shared else None
    governor = Governor(jumping.timing(), ALLOWANCE, budget)
    crowd = [HeadWrite(str(number), float(number)) for number in range(60)]
    random.Random(14).shuffle(crowd)
    began = jumping.now
    written = await order_of(governor, jumping, crowd)
    assert len(written) == len(crowd)
    # A write with room within seconds does not wait, so the first go out as they come, and neighbors may swap.
    assert wrong_share(written[10:]) < 0.03
    assert jumping.now - began < 2 * 3600, "as fast as the hourly limit allows"


def wrong_share(written: Sequence[HeadWrite]) -> float:
    """Return the share of pairs in which the older head was written earlier; in random order it is a half."""
    pairs = [(first, second) for n, first in enumerate(written) for second in written[n + 1 :]]
    return sum(first.since < second.since for first, second in pairs) / len(pairs)
