"""Processes that die at the worst moments: nothing is lost, and nothing is done twice."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any, LiteralString

import pytest

from bot.core.errors import OUTAGE_PATIENCE
from bot.core.events import Repository
from bot.engine.jobs.definitions import Origin, effect_jobs
from bot.engine.jobs.notes import RETRYING, Note, write_note
from bot.engine.jobs.once import defer_once
from bot.engine.processor import PlannedEffect, PlannedEffects
from bot.engine.retry import MAX_ALONE, SUSPECT_AFTER, Tries
from bot.engine.service import Engine
from tests.engine.replica import replica
from tests.engine.running import LOCK, QUICK, opened, outcomes, running, settled, texts, twice
from tests.engine.test_only_plan import COMMENT, INTENT
from tests.engine.toy import AGAIN, SORRY, World, body, writes
from tests.waiting import until

EVENT = "issue_comment"
RESUME_NOW: LiteralString = "UPDATE procrastinate_jobs SET scheduled_at = NULL WHERE task_name = 'resume'"
LOSE_TRIES: LiteralString = "UPDATE procrastinate_jobs SET attempts = %(attempts)s"
RESUMED: LiteralString = """
SELECT note.text FROM procrastinate_jobs AS job JOIN nightjar_notes AS note ON note.job_id = job.id
 WHERE job.task_name = 'resume' AND job.status = 'succeeded'
"""
WAITING: LiteralString = """
SELECT job.id FROM procrastinate_jobs AS job JOIN nightjar_notes AS note ON note.job_id = job.id
 WHERE job.task_name = %(task)s AND job.status = 'todo' AND note.outcome = 'retrying'
"""
OF_TASK: LiteralString = """
SELECT id, status, args FROM procrastinate_jobs WHERE task_name = %(task)s ORDER BY id LIMIT 1
"""
BACK_DATE: LiteralString = "UPDATE procrastinate_jobs SET args = %(args)s WHERE id = %(id)s"
LOSE: LiteralString = """
UPDATE procrastinate_jobs SET status = 'todo', scheduled_at = NULL, attempts = %(attempts)s WHERE id = %(id)s
"""
LOAD = 16
KILLS = 4


@pytest.mark.parametrize("moment", ["before", "after"])
async def test_a_process_killed_around_a_write_loses_and_repeats_nothing(
    database_url: str, place: Path, world: World, moment: str
) -> None:
    effects: list[dict[str, Any]] = [{"target": "x", "dies": moment}, {"target": "y"}]
    async with replica(database_url, place, QUICK) as first:
        await first.send("g", LOCK, body({"a": {"effects": effects, "conclude": {}}}))
        assert await first.ended() == -9
    async with running(database_url, world) as engine:
        (record,) = await settled(engine, "g")
    assert world.written == ["g a x", "g a y", "g a end"]
    assert outcomes(record)["a x"] == ("applied" if moment == "before" else "unchanged")
    assert record.state == "done"


async def test_a_process_killed_while_planning_plans_again(database_url: str, place: Path, world: World) -> None:
    async with replica(database_url, place, QUICK) as first:
        await first.send("g", LOCK, body({"a": {**writes("x"), "dies": "before"}}))
        assert await first.ended() == -9
    async with running(database_url, world) as engine:
        await settled(engine, "g")
    assert world.written == ["g a x"]


@pytest.mark.parametrize(
    ("members", "intent", "plans"), [({}, "guid:g", 1), (COMMENT, INTENT, 0)], ids=["one delivery", "perhaps several"]
)
async def test_a_plan_that_was_stored_before_its_worker_died_is_not_stored_again(
    database_url: str, world: World, members: dict[str, Any], intent: str, plans: int
) -> None:
    """The kill comes between the commit of the plan and the end of its job, which only earlier releases store apart.

    A plan whose key only this delivery can have is not looked up, but made in vain.
    """
    async with opened(database_url) as engine:
        await engine.accept("g", EVENT, body({"a": writes("not planned again")}, **members), LOCK)
        connector = engine.database.connector
        origin = Origin("g", "a", intent, 1, 1.0, 0, LOCK)
        insert = (
            "INSERT INTO procrastinate_jobs (queue_name, task_name, lock, queueing_lock, args, attempts)"
            " VALUES ('default', 'handle', %(lock)s, %(key)s, %(args)s, 1) RETURNING id"
        )
        key = f"once:plan:a:{intent}"
        (row,) = await connector.execute_query_all_async(insert, lock=LOCK, key=key, args=origin.args)
        planned = PlannedEffects((PlannedEffect("planned before", {"kind": "Write"}),))
        repository = Repository(id=1, full_name="octocat/compiler", installation_id=None)
        await defer_once(connector, effect_jobs(origin, int(str(row["id"])), repository, planned))
    async with running(database_url, world) as engine:
        await settled(engine, "g")
    assert world.written == ["g a planned before"]
    assert world.passes("plan g a") == plans


INNOCENTS = 6


async def test_a_job_that_crashes_its_process_is_quarantined_and_the_others_succeed(
    database_url: str, place: Path, world: World
) -> None:
    """The processes are restarted, as by a supervisor; on PostgreSQL there are two of them.

    At each crash all jobs are in progress, until the crashing job and each of the others run alone in turn.
    """
    poison = {"effects": [{"target": "poison", "takes": 0.3, "dies": "midway", "deaths": 99}], "conclude": {}}
    innocent = {"effects": [{"target": "x", "takes": 0.6}]}
    guids = [f"innocent {n}" for n in range(INNOCENTS)]
    async with opened(database_url, world) as command:
        await command.accept("g", EVENT, body({"a": poison}), LOCK)
        for n, guid in enumerate(guids):
            await command.accept(guid, EVENT, body({"a": innocent}), f"pr:2#{n}")
        lives = [0]
        keepers = [
            asyncio.create_task(run_on(database_url, place, lives))
            for _ in range(1 if command.database.embedded else 2)
        ]
        try:
            records = await settled(command, "g", *guids)
        finally:
            for holder in keepers:
                holder.cancel()
            await asyncio.gather(*keepers, return_exceptions=True)
        assert [record.state for record in records] == ["failed", *["done"] * INNOCENTS]
        assert texts(records[0])["a poison"] == (
            "LostTooOften: it was the only running job when its process ended, 3 times in a row, so it runs again, "
            "alone, in an hour; `nightjar replay` runs it at once"
        )
        assert lives[0] <= SUSPECT_AFTER + MAX_ALONE + len(keepers)
        assert twice(world.written) == []
        assert f"poison=failed: {SORRY.format(guid='g')} {AGAIN}" in world.texts
        (failed,) = await command.journal.recent(failed=True)
        assert failed.guid == "g"
        deaths = world.passes("effect g a poison dies")
        await pass_quiet_hour(command)
        restarts = asyncio.create_task(run_on(database_url, place, lives))
        try:
            await until(lambda: world.passes("effect g a poison dies") > deaths)
            await settled(command, "g")
        finally:
            restarts.cancel()
            await asyncio.gather(restarts, return_exceptions=True)
        assert world.passes("effect g a poison dies") == deaths + 1, "after the first time, it ends one process an hour"
    for _ in range(99):
        world.passed("effect g a poison dies")  # no deaths are left
    async with running(database_url, world) as engine:
        await pass_quiet_hour(engine)
        await until(lambda: "g a poison" in world.written)
        (record,) = await settled(engine, "g")
    assert record.state == "done", "after the fix, it succeeds by itself"
    assert "poison=applied: written | again" in world.texts, "the conclusion is drawn again"


async def pass_quiet_hour(engine: Engine) -> None:
    """Let the jobs that run again in an hour run now."""
    await engine.database.connector.execute_query_async(RESUME_NOW)


async def resumed(engine: Engine) -> list[str]:
    return [str(row["text"]) for row in await engine.database.connector.execute_query_all_async(RESUMED)]


@pytest.mark.parametrize("is_replayed", [False, True])
async def test_a_quarantined_job_runs_again_once_whoever_queues_it(
    database_url: str, world: World, *, is_replayed: bool
) -> None:
    async with opened(database_url, world) as engine:
        await engine.accept("g", EVENT, body({"a": writes("x")}), LOCK)
        connector = engine.database.connector
        (delivery,) = await engine.journal.recent()
        await write_note(connector, delivery.job.job_id, Note(outcome=RETRYING, tries=Tries(alone=MAX_ALONE)))
        await connector.execute_query_async(LOSE_TRIES, attempts=SUSPECT_AFTER + MAX_ALONE)
    async with running(database_url, world) as engine:
        (failed,) = await settled(engine, "g")
        assert (failed.state, failed.job.outcome) == ("failed", "failed")
        assert world.written == []
        if is_replayed:
            await engine.replay("g")
        await pass_quiet_hour(engine)
        await until(lambda: world.written)
        (done,) = await settled(engine, "g")
        assert done.state == "done"
        await until(partial(resumed, engine))
        (text,) = await resumed(engine)
    assert ("meanwhile" in text) == is_replayed
    assert world.written == ["g a x"]


@pytest.mark.parametrize("task", ["deliver", "handle", "conclude"])
async def test_people_learn_of_the_first_and_of_the_last_failure_of_a_job_that_runs_again(
    database_url: str, world: World, task: str
) -> None:
    waits = {"errors": ["again:3600"]}
    plan = {**writes("x"), "answer": {}, "conclude": waits if task == "conclude" else {}}
    script = {"a": {**plan, **(waits if task == "handle" else {})}}
    async with running(database_url, world) as engine:
        await engine.accept("g", EVENT, body(script, route=waits if task == "deliver" else {}), LOCK)
        await until(lambda: engine.database.connector.execute_query_all_async(WAITING, task=task))
    await lose(database_url, world, task)
    async with running(database_url, world) as engine:
        await settled(engine, "g")
    assert world.texts[-1].endswith(f"{SORRY.format(guid='g')} {AGAIN}")
    await lose(database_url, world, task)
    async with running(database_url, world) as engine:
        (record,) = await settled(engine, "g")
    assert record.state == "failed"
    assert world.texts[-1].endswith(SORRY.format(guid="g")), "it does not run again after three days"


async def lose(url: str, world: World, task: str) -> None:
    """Store that three processes ended while a job ran alone; each call is three days after the last one."""
    async with opened(url, world) as engine:
        connector = engine.database.connector
        rows: list[dict[str, Any]] = await connector.execute_query_all_async(OF_TASK, task=task)
        row = rows[0]
        await write_note(connector, row["id"], Note(outcome=RETRYING, tries=Tries(alone=MAX_ALONE)))
        if row["status"] == "failed":
            args = {**row["args"], "received_at": row["args"]["received_at"] - OUTAGE_PATIENCE}
            await connector.execute_query_async(BACK_DATE, id=row["id"], args=args)
        await connector.execute_query_async(LOSE, id=row["id"], attempts=SUSPECT_AFTER + MAX_ALONE)


async def run_on(url: str, place: Path, lives: list[int]) -> None:
    """Restart a process whenever it has ended."""
    while True:
        lives[0] += 1
        async with replica(url, place, QUICK, doomed=True) as process:
            await process.ended()


async def test_repeated_kills_lose_and_repeat_nothing(database_url: str, place: Path, world: World) -> None:
    """Under load, the process that accepts and works is killed again and again: everything acknowledged is done."""
    acknowledged: set[str] = set()
    guids = iter(f"g{n}" for n in range(100_000))
    for kill in range(KILLS + 1):
        async with replica(database_url, place, QUICK) as process:
            for _ in range(LOAD):
                guid = next(guids)
                script = {"effects": [{"target": "x", "takes": 0.002}, {"target": "y"}], "conclude": {}}
                await process.send(guid, f"pr:1#{hash(guid) % 7}", body({"a": script, "b": writes("z")}))
            if kill < KILLS:
                # In the middle of it: some are stored, some are done, the rest is in progress.
                await until(lambda: len(process.acknowledged) >= LOAD // 2)
                process.kill()
            else:
                await until(lambda: len(process.acknowledged) == LOAD)
            if kill == KILLS:
                acknowledged |= process.acknowledged
                async with opened(database_url) as command:
                    await settled(command, *acknowledged)
            else:
                await process.ended()
                acknowledged |= process.acknowledged
    assert len(acknowledged) >= KILLS * LOAD // 2 + LOAD
    written = world.written
    assert twice(written) == []
    for guid in acknowledged:
        assert {f"{guid} a x", f"{guid} a y", f"{guid} a end", f"{guid} b z"} <= set(written)
