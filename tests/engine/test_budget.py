"""One budget of writes across processes and restarts, on both databases."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from random import Random
from typing import LiteralString

import pytest

from bot.engine.budget import BOOK, SWEEP_EVERY, WAIT, WriteBudget, WritePace
from bot.engine.database import Database
from tests.fork_server import launch
from tests.running import ROOT, environment

USUAL = WritePace(per_minute=80, per_hour=450, burst=15, spacing=1.0)
AT_ONCE = WritePace(per_minute=80, per_hour=450, burst=10_000, spacing=0.0)
COUNT = "SELECT count(*) AS n FROM nightjar_writes"


class Clock:
    def __init__(self) -> None:
        self.now = 1_790_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def budget(database: Database, clock: Clock) -> WriteBudget:
    return WriteBudget(database.connector, clock)


def most_within(seconds: float, moments: Sequence[float]) -> int:
    moments = sorted(moments)
    return max(bisect_left(moments, start + seconds - 1e-3) - place for place, start in enumerate(moments))


async def book_at_once(budget: WriteBudget, pace: WritePace, times: int, name: str = "42") -> list[float]:
    return [await budget.book(name, pace, 0.0) for _ in range(times)]


@pytest.mark.parametrize(
    ("pace", "allowed", "wait"),
    [
        (WritePace(80, 450, 10_000, 0.0), 80, 60),
        (WritePace(10_000, 450, 10_000, 0.0), 450, 3600),
        (WritePace(80, 450, 15, 1.0), 15, 1),
        (WritePace(1, 450, 15, 1.0), 1, 60),
        (WritePace(80, 450, 1, 2.5), 1, 2.5),
    ],
)
async def test_each_limit_allows_exactly_as_many_writes_as_it_says(
    budget: WriteBudget, clock: Clock, pace: WritePace, allowed: int, wait: float
) -> None:
    assert await book_at_once(budget, pace, allowed + 1) == [0.0] * allowed + [pytest.approx(wait, abs=1e-3)]
    clock.now += wait - 0.01
    assert await budget.book("42", pace, 0.0) == pytest.approx(0.01, abs=1e-3)
    clock.now += 0.02
    assert await budget.book("42", pace, 0.0) == 0.0


def earliest(booked: Sequence[float], now: float, pace: WritePace) -> float:
    """Return the time of the next write as the limits define it, from all moments of the last hour."""
    moments = [now]
    recent = sorted((moment for moment in booked if moment > now - 3600), reverse=True)
    for place, moment in enumerate(recent, 1):
        moments.append(moment + (place - pace.burst + 1) * pace.spacing)
        if place == pace.per_minute:
            moments.append(moment + 60)
        if place == pace.per_hour:
            moments.append(moment + 3600)
    return max(moments)


@pytest.mark.parametrize("seed", range(4))
async def test_a_write_is_booked_for_the_earliest_time_that_the_limits_allow(
    budget: WriteBudget, clock: Clock, seed: int
) -> None:
    rng, booked = Random(seed), list[float]()
    spacing = [0.0, 1.0, 4.0, 20.0][seed]
    paces = [WritePace(rng.randint(3, 9), rng.randint(12, 30), burst, spacing) for burst in (7, 3, 1, 0, -2)]
    for _ in range(80):
        pace = rng.choice(paces)
        wait = await budget.book("42", pace, 5.0)
        assert wait == pytest.approx(earliest(booked, clock.now, pace) - clock.now, abs=1e-3)
        if wait <= 5.0:
            booked.append(clock.now + wait)
        clock.now += rng.choice([0.0, 0.1, 2.0, 20.0, 60.0, 400.0])


async def test_a_refused_write_is_not_booked(budget: WriteBudget, clock: Clock) -> None:
    await book_at_once(budget, AT_ONCE, 90)
    clock.now += 60.001
    assert await book_at_once(budget, AT_ONCE, 80) == [0.0] * 80


async def test_a_write_is_booked_ahead_up_to_its_patience(budget: WriteBudget) -> None:
    waits = [await budget.book("42", USUAL, 5.0) for _ in range(22)]
    assert waits == pytest.approx([0] * 15 + [1, 2, 3, 4, 5, 6, 6], abs=1e-3)


async def test_two_installations_have_separate_budgets(budget: WriteBudget) -> None:
    await book_at_once(budget, AT_ONCE, 80)
    assert await budget.book("43", AT_ONCE, 0.0) == 0.0
    assert await budget.book("42", AT_ONCE, 0.0) == pytest.approx(60, abs=1e-3)


async def test_replicas_and_restarts_share_one_budget(database: Database, clock: Clock) -> None:
    """Two replicas used to write 149 times in a minute, one with restarts 194 times."""
    replicas, sent = [WriteBudget(database.connector, clock), WriteBudget(database.connector, clock)], []
    began = clock.now
    while clock.now < began + 150:
        for place in (0, 1):
            wait = await replicas[place].book("42", USUAL, 5.0)
            if wait <= 5.0:
                sent.append(clock.now + wait)
        replicas[int(clock.now) % 2] = WriteBudget(database.connector, clock)
        clock.now += 0.6
    assert most_within(60, sent) in range(70, 81)
    assert most_within(0.9, sent) <= 15


async def test_a_lower_rank_leaves_the_rest_for_a_higher_one(budget: WriteBudget) -> None:
    lower = WritePace(per_minute=72, per_hour=405, burst=10, spacing=1.0)
    waits = [await budget.book("42", lower, 5.0) for _ in range(20)]
    assert [wait for wait in waits if wait <= 5.0] == pytest.approx([0] * 10 + [1, 2, 3, 4, 5], abs=1e-3)
    higher = [await budget.book("42", USUAL, 5.0) for _ in range(5)]
    assert higher == pytest.approx([1, 2, 3, 4, 5], abs=1e-3)


@pytest.mark.parametrize("ahead", [31.0, 2000.0, 7200.0, 86400.0 * 30])
async def test_a_clock_that_was_ahead_for_a_while_blocks_nobody(
    budget: WriteBudget, clock: Clock, ahead: float
) -> None:
    clock.now += ahead
    for _ in range(40):
        assert await budget.book("42", USUAL, 0.0) == 0.0
        clock.now += 1.0
    clock.now -= ahead + 40
    # The forty count as written in the last forty seconds.
    assert await book_at_once(budget, AT_ONCE, 41) == [0.0] * 40 + [pytest.approx(21, abs=0.1)]


async def test_a_clock_that_falls_back_a_little_only_delays(budget: WriteBudget, clock: Clock) -> None:
    await book_at_once(budget, AT_ONCE, 80)
    clock.now -= 29
    assert await budget.book("42", AT_ONCE, 0.0) == pytest.approx(60 + 29, abs=1e-3)


async def test_expired_bookings_are_deleted(database: Database, budget: WriteBudget, clock: Clock) -> None:
    pace = WritePace(10_000, 10_000, 10_000, 0.0)
    for _ in range(3):
        await book_at_once(budget, pace, SWEEP_EVERY)
        clock.now += 3601
    row = await database.connector.execute_query_one_async(COUNT)
    assert row["n"] == SWEEP_EVERY


async def test_by_default_the_databases_clock_is_used(database: Database) -> None:
    budget = WriteBudget(database.connector)
    assert await budget.book("42", WritePace(1, 450, 15, 1.0), 0.0) == 0.0
    assert await budget.book("42", WritePace(1, 450, 15, 1.0), 0.0) == pytest.approx(60, abs=15)


async def test_processes_that_book_at_the_same_moment_never_exceed_the_budget(
    database: Database, url_with_tables: str
) -> None:
    """Of 160 writes that four processes request at once, eighty are granted."""
    crowd = [await launch("tests.engine.crowd", url_with_tables, env=environment({}), cwd=ROOT) for _ in range(4)]
    granted = [int((await process.communicate())[0]) for process in crowd]
    assert sum(granted) == 80
    row = await database.connector.execute_query_one_async(COUNT)
    assert row["n"] == 80


async def test_a_booking_reads_an_index_and_no_table(database: Database, budget: WriteBudget) -> None:
    for name in range(10):
        await book_at_once(budget, AT_ONCE, 30, str(name))
    values = {"budget": "7", "per_minute": 80, "per_hour": 450, "burst": 15, "spacing": 1.0, "patience": 5.0}
    if not database.embedded:
        await database.connector.execute_query_async("ANALYZE nightjar_writes")
        await database.connector.execute_query_async("SET enable_seqscan = off")
    for statement in (BOOK, WAIT):
        explain: LiteralString = "EXPLAIN QUERY PLAN " if database.embedded else "EXPLAIN "
        rows = await database.connector.execute_query_all_async(explain + statement, **values, now=None)
        plan = "\n".join(str(row) for row in rows)
        assert "nightjar_writes" in plan
        assert "SCAN nightjar_writes" not in plan
        assert "Seq Scan on nightjar_writes" not in plan
