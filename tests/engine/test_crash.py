"""Processes that die at the worst moments: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from bot.engine.jobs import Origin, effect_jobs
from bot.engine.once import defer_once
from bot.engine.processor import PlannedEffect, PlannedEffects
from bot.engine.retry import MAX_LOST
from bot.events import Repository
from tests.engine.replica import replica
from tests.engine.running import LOCK, QUICK, opened, outcomes, running, settled, texts, twice
from tests.engine.toy import SORRY, World, body, writes
from tests.waiting import until

EVENT = "issue_comment"
LOAD = 30
KILLS = 4


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """Return where the world is kept."""
    return tmp_path / "world.db"


@pytest.fixture
def world(place: Path) -> Iterator[World]:
    """Return a world in which nothing has happened."""
    made = World(place)
    yield made
    made.close()


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_process_killed_around_a_write_loses_and_doubles_nothing(
    database_url: str, place: Path, world: World, moment: str
) -> None:
    effects: list[dict[str, Any]] = [{"target": "x", "dies": moment}, {"target": "y"}]
    async with replica(database_url, place, QUICK) as first:
        await first.send("g", LOCK, body({"a": {"effects": effects, "closing": True}}))
        assert await first.ended() == -9
    async with running(database_url, world) as engine:
        (record,) = await settled(engine, "g")
    assert world.written == ["g a x", "g a y", "g a closing"]
    assert outcomes(record)["a x"] == ("applied" if moment == "before" else "unchanged")
    assert record.state == "done"


async def test_a_process_killed_while_it_plans_plans_again(database_url: str, place: Path, world: World) -> None:
    async with replica(database_url, place, QUICK) as first:
        await first.send("g", LOCK, body({"a": {**writes("x"), "dies": "before"}}))
        assert await first.ended() == -9
    async with running(database_url, world) as engine:
        await settled(engine, "g")
    assert world.written == ["g a x"]


async def test_a_plan_that_was_stored_before_its_worker_died_is_not_made_again(database_url: str, world: World) -> None:
    """As if the kill fell between the commit of the plan and the end of its job."""
    async with opened(database_url) as engine:
        await engine.accept("g", EVENT, body({"a": writes("not planned again")}), LOCK)
        connector = engine.database.connector
        origin = Origin("g", "a", "guid:g", 1, 1.0, 0, LOCK)
        insert = (
            "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, attempts)"
            " VALUES ('default', 'handle', %(lock)s, 'once:plan:a:guid:g', %(args)s, 1) RETURNING id"
        )
        (row,) = await connector.execute_query_all_async(insert, lock=LOCK, args=origin.args)
        planned = PlannedEffects((PlannedEffect("planned before", {"kind": "Write"}),))
        repository = Repository(id=1, full_name="octocat/compiler", installation_id=None)
        await defer_once(connector, effect_jobs(origin, int(str(row["id"])), repository, planned))
    async with running(database_url, world) as engine:
        await settled(engine, "g")
    assert world.written == ["g a planned before"]
    assert [what for what in world.happenings if what.startswith("plan")] == []


async def test_a_job_that_takes_its_workers_down_is_given_up_and_people_hear_of_it(
    sqlite_url: str, place: Path, world: World
) -> None:
    """The process dies and is started again, as its keeper would do, until the job is found out."""
    script = {"effects": [{"target": "poison", "dies": "before", "deaths": 99}], "closing": True}
    async with opened(sqlite_url) as web:
        await web.accept("g", EVENT, body({"a": script}), LOCK)
    lives = 0
    while True:
        lives += 1
        assert lives <= MAX_LOST + 2
        async with replica(sqlite_url, place, QUICK, doomed=True) as it, opened(sqlite_url) as command:
            ended = asyncio.create_task(it.ended())
            done = asyncio.create_task(settled(command, "g"))
            await asyncio.wait([ended, done], return_when=asyncio.FIRST_COMPLETED)
            if done.done():
                (record,) = done.result()
                break
            done.cancel()
    assert lives == MAX_LOST + 1
    assert texts(record)["a poison"] == f"LostTooOften: it took its worker down {MAX_LOST} times"
    assert world.texts == [f"poison=failed: {SORRY.format(guid='g')}"]


async def test_a_storm_of_kills_loses_and_doubles_nothing(database_url: str, place: Path, world: World) -> None:
    """Under load, the process that accepts and works is killed again and again: what was acknowledged is done."""
    acknowledged: set[str] = set()
    guids = iter(f"g{n}" for n in range(100_000))
    for kill in range(KILLS + 1):
        async with replica(database_url, place, QUICK) as it:
            for _ in range(LOAD):
                guid = next(guids)
                script = {"effects": [{"target": "x", "takes": 0.002}, {"target": "y"}], "closing": True}
                await it.send(guid, f"pr:1#{hash(guid) % 7}", body({"a": script, "b": writes("z")}))
            if kill < KILLS:
                # In the thick of it: some are stored, some are done, the rest is under way.
                await until(lambda: len(it.acknowledged) >= LOAD // 2)
                it.kill()
            else:
                await until(lambda: len(it.acknowledged) == LOAD)
            if kill == KILLS:
                acknowledged |= it.acknowledged
                async with opened(database_url) as command:
                    await settled(command, *acknowledged, deadline=60)
            else:
                await it.ended()
                acknowledged |= it.acknowledged
    assert len(acknowledged) >= KILLS * LOAD // 2 + LOAD
    written = world.written
    assert twice(written) == []
    for guid in acknowledged:
        assert {f"{guid} a x", f"{guid} a y", f"{guid} a closing", f"{guid} b z"} <= set(written)
