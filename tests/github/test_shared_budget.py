"""The writes of several processes for one installation, each with its own governor, on one database."""

from __future__ import annotations

import asyncio

import pytest

from bot.engine.budget import WriteBudget, WritePace
from bot.engine.database import Database
from bot.engine.sql.errors import DatabaseFailure
from bot.github.errors import RateLimited
from bot.github.limits.governor import BOOKING_TIMEOUT, Governor
from bot.github.limits.ledger import ANONYMOUS_SPENT, Demand
from bot.github.limits.ranks import Rank
from tests.github.test_limits import most_within
from tests.github.virtual import JumpingTime

WRITE = Demand(points=5, write=True, rank=Rank.WRITER)


@pytest.fixture
def budget(database: Database, jumping: JumpingTime) -> WriteBudget:
    return WriteBudget(database.connector, lambda: jumping.now)


async def send(governor: Governor, demand: Demand = WRITE) -> float | None:
    """Return when it was sent, None if it was refused."""
    try:
        async with governor.turn("42", demand) as sent_at:
            return sent_at
    except RateLimited:
        return None


async def test_two_replicas_and_restarts_stay_within_one_minutes_budget(
    budget: WriteBudget, jumping: JumpingTime
) -> None:
    """When each process counted alone, two replicas wrote 149 times in 60 s, one with restarts 194 times."""
    replicas = [Governor(jumping.timing(), shared=budget) for _ in range(2)]
    sent: list[float] = []
    for attempt in range(200):
        sent_at = await send(replicas[attempt % 2])
        sent += [sent_at] if sent_at is not None else []
        if attempt % 20 == 0:
            replicas[attempt // 20 % 2] = Governor(jumping.timing(), shared=budget)
    assert most_within(60, sent) <= 80
    assert most_within(0.9, sent) <= 15
    assert len(sent) == 200


async def test_reading_books_nothing(budget: WriteBudget, jumping: JumpingTime, database: Database) -> None:
    governor = Governor(jumping.timing(), shared=budget)
    for _ in range(5):
        await send(governor, Demand())
    row = await database.connector.execute_query_one_async("SELECT count(*) AS n FROM nightjar_writes")
    assert row["n"] == 0


async def test_anonymous_questions_share_their_budget_too(budget: WriteBudget, jumping: JumpingTime) -> None:
    replicas = [Governor(jumping.timing(), shared=budget) for _ in range(2)]
    ask = Demand(rank=Rank.ANONYMOUS)
    sent = [await send(replicas[attempt % 2], ask) for attempt in range(252)]
    assert sent.count(None) == 2
    assert await send(replicas[0], Demand()) is not None


async def test_a_process_says_why_an_anonymous_question_is_refused(budget: WriteBudget, jumping: JumpingTime) -> None:
    governor = Governor(jumping.timing(), shared=budget)
    for _ in range(250):
        await send(governor, Demand(rank=Rank.ANONYMOUS))
    with pytest.raises(RateLimited, match=ANONYMOUS_SPENT):
        async with governor.turn("42", Demand(rank=Rank.ANONYMOUS)):
            pass


class Away:
    """A database that cannot be reached, or never answers, until it is back."""

    def __init__(self, budget: WriteBudget, *, hangs: bool = False) -> None:
        self._budget, self._hangs = budget, hangs
        self.back = False
        self.requests = 0

    async def book(self, name: str, pace: WritePace, patience: float) -> float:
        if self.back:
            return await self._budget.book(name, pace, patience)
        self.requests += 1
        if self._hangs:
            await asyncio.Event().wait()
        raise DatabaseFailure("down")


async def test_without_the_database_a_process_writes_a_quarter_by_its_own_count(
    budget: WriteBudget, jumping: JumpingTime
) -> None:
    away = Away(budget)
    governor = Governor(jumping.timing(), shared=away)
    sent = []
    for _ in range(60):
        sent.append(await send(governor))
        jumping.now += 0.5
    assert len([sent_at for sent_at in sent if sent_at is not None]) == 20
    assert away.requests < 10
    away.back = True
    jumping.now += 10
    assert [await send(governor) for _ in range(10)].count(None) == 0


async def test_a_database_that_hangs_delays_a_write_by_two_seconds_once(
    budget: WriteBudget, jumping: JumpingTime
) -> None:
    away = Away(budget, hangs=True)
    governor = Governor(jumping.timing(), shared=away, booking_timeout=BOOKING_TIMEOUT / 100)
    assert [await send(governor) for _ in range(3)].count(None) == 0
    assert away.requests == 1
