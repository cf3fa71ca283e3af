"""Work that a person waits for goes before a backlog of other work, and the backlog does not starve."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from bot.engine.service import Engine
from bot.engine.upkeep import LONG_WAIT, MOST_AT_ONCE, raise_oldest
from tests.engine.running import LOCK, QUICK, opened, running, settled
from tests.engine.toy import World, body, writes
from tests.waiting import until

BACKLOG = 300
NOW = 1_700_000_000.0
ONE_AT_A_TIME = replace(QUICK, concurrency=1, reap=3600.0)


def delivered(world: World) -> list[str]:
    return [happening.removeprefix("deliver ") for happening in world.happenings if happening.startswith("deliver ")]


async def test_a_command_goes_before_a_backlog_and_after_earlier_deliveries_of_its_pull_request(
    url_with_tables: str, world: World
) -> None:
    """The push before the command decides which commit the command is about."""
    async with opened(url_with_tables) as web:
        for n in range(BACKLOG):
            await web.accept(f"star-{n}", "star", body({}), f"repo:{n}")
        await web.accept("push", "pull_request", body({}), LOCK)
        await web.accept("command", "issue_comment", body({"a": writes("x")}), LOCK, urgent=True)
        await web.accept("push-after", "pull_request", body({}), LOCK)
    async with running(url_with_tables, world, pace=ONE_AT_A_TIME) as engine:
        await settled(engine, "command")
        assert delivered(world)[:2] == ["push", "command"]
        assert world.written == ["command a x"]
        assert "push-after" not in delivered(world)[:3]


async def test_a_command_goes_behind_the_plan_in_progress_and_before_the_next_delivery_of_its_pull_request(
    url_with_tables: str, world: World
) -> None:
    """The end of a job begins the next job of its plan, but never a delivery, which would go before those of others."""
    plan = {"effects": [{"target": "x", "waits_for": "commanded"}, {"target": "y"}], "conclude": {}}
    async with running(url_with_tables, world, pace=ONE_AT_A_TIME) as engine:
        await engine.accept("first", "pull_request", body({"a": plan}), LOCK)
        for n in range(20):
            await engine.accept(f"next-{n}", "pull_request", body({"a": writes("x", "y")}), LOCK)
        await until(lambda: world.passes("effect first a x"))
        await engine.accept("command", "issue_comment", body({"a": writes("z")}), "pr:1#8", urgent=True)
        world.passed("commanded")
        await settled(engine, "command")
    assert delivered(world)[:2] == ["first", "command"]
    assert world.written[:4] == ["first a x", "first a y", "first a end", "command a z"]


async def test_a_command_that_arrives_together_with_others_goes_behind_earlier_ones(
    url_with_tables: str, world: World
) -> None:
    async with opened(url_with_tables) as web:
        first = [web.accept(f"star-{n}", "star", body({}), f"repo:{n}") for n in range(20)]
        push = web.accept("push", "pull_request", body({}), LOCK)
        command = web.accept("command", "issue_comment", body({}), LOCK, urgent=True)
        assert all(await asyncio.gather(*first, push, command))
    async with running(url_with_tables, world, pace=ONE_AT_A_TIME) as engine:
        await settled(engine, "command")
    assert delivered(world)[:2] == ["push", "command"]


async def test_our_own_deliveries_and_timers_go_before_a_backlog(url_with_tables: str, world: World) -> None:
    async with opened(url_with_tables) as web:
        for n in range(BACKLOG):
            await web.accept(f"star-{n}", "star", body({}), f"repo:{n}")
        await web.accept("timer", "nightjar.timer", body({}), "timer:1:nightly")
    async with running(url_with_tables, world, pace=ONE_AT_A_TIME) as engine:
        await settled(engine, "timer")
        assert delivered(world)[0] == "timer"


async def test_old_waiting_jobs_join_the_urgent_ones_in_parts(sqlite_url: str, world: World) -> None:
    async with Engine(sqlite_url, clock=lambda: NOW) as web:
        for n in range(BACKLOG):
            await web.accept(f"star-{n}", "star", body({}), f"repo:{n}")
        await raise_oldest(web.database.connector, NOW + LONG_WAIT)
        await web.accept("first", "issue_comment", body({}), LOCK, urgent=True)
        await raise_oldest(web.database.connector, NOW + LONG_WAIT + 1)
        await web.accept("second", "issue_comment", body({}), "pr:1#8", urgent=True)
    async with running(sqlite_url, world, pace=ONE_AT_A_TIME, clock=lambda: NOW) as engine:
        await settled(engine, "second")
    order = delivered(world)
    assert order[:MOST_AT_ONCE] == [f"star-{n}" for n in range(MOST_AT_ONCE)], "only the oldest ones"
    assert order[MOST_AT_ONCE : MOST_AT_ONCE + 2] == ["first", "second"]
