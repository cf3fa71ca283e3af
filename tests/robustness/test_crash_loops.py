"""A process that something outside kills again and again: no job is blamed for it, and nothing is lost."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import LiteralString

import pytest

from bot.engine.service import Engine
from sandbox.faults import Fault
from tests.engine.replica import replica
from tests.engine.running import QUICK, opened, settled
from tests.engine.toy import World, body
from tests.robustness.place import BOT, open_place
from tests.waiting import until

KILLS = 11
LOAD = 24
"""Deliveries; every third of them waits for the one before, under the same lock."""
OF_PULL = re.compile("/(pulls|issues|collaborators)/")
GITHUB = "github answers"
PACE = replace(QUICK, stalled=0.6, min_age=2.0)

AT_REST: LiteralString = """
SELECT NOT EXISTS (SELECT 1 FROM procrastinate_jobs WHERE status = 'doing') AND EXISTS (
       SELECT 1 FROM procrastinate_jobs WHERE status = 'todo' AND scheduled_at > now()) AS at_rest
"""
STATES: LiteralString = "SELECT status, count(*) AS jobs FROM procrastinate_jobs GROUP BY status"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Return a world without events."""
    with closing(World(tmp_path / "world.db")) as empty_world:
        yield empty_world


async def has_begun_what_it_can(engine: Engine, world: World, process: int) -> bool:
    if any(pid == process for _, _, pid in world.moments("")):
        return True
    (row,) = await engine.database.connector.execute_query_all_async(AT_REST)
    return bool(row["at_rest"])


async def test_kills_from_outside_while_github_hangs_lose_nothing(
    database_url: str, tmp_path: Path, world: World
) -> None:
    """Each process lives until it has begun a job, or has none to begin: then something outside kills it."""
    guids = [f"g{n}" for n in range(LOAD)]
    effects = [{"target": "x", "waits_for": GITHUB}, {"target": "y"}]
    async with opened(database_url, world) as engine:
        for n, guid in enumerate(guids):
            script = {"a": {"effects": effects, "conclude": {}, **({"waits_for": GITHUB} if n % 2 else {})}}
            await engine.accept(guid, "issue_comment", body(script), f"pr:1#{n - n % 3}")
        for _ in range(KILLS):
            async with replica(database_url, tmp_path / "world.db", PACE) as process:
                await until(partial(has_begun_what_it_can, engine, world, process.pid))
                process.kill()
                await process.ended()
        assert not [row for row in await states(engine) if row == "failed"]
        world.passed(GITHUB)
        async with replica(database_url, tmp_path / "world.db", PACE):
            records = await settled(engine, *guids)
    assert {record.guid: record.state for record in records} == dict.fromkeys(guids, "done")
    written = world.written
    assert sorted(written) == sorted(f"{guid} a {target}" for guid in guids for target in ("x", "y", "end"))


async def test_the_bot_answers_every_command_after_kills_while_github_hangs(sqlite_url: str, tmp_path: Path) -> None:
    async with open_place(tmp_path, sqlite_url) as place:
        repository = place.add_repository("octocat")
        place.configure([repository.full_name])
        await place.start()
        pull = repository.open_pull_request("hubot", "Faster")
        await place.quiet()
        hang = place.github.faults.pause("*", OF_PULL, when="before", times=None)
        comments = [pull.comment("hubot", "@ci help") for _ in range(3)]
        await place.github.delivered()
        hits = 0
        for _ in range(KILLS):
            async with place.beside() as engine:
                await until(partial(hangs_or_rests, engine, hang, hits))
            await place.bot.kill()
            hits = hang.hits
            await place.start()
        hang.times = 0
        hang.abandon()
        await place.quiet()
        assert await place.deliveries(failed=True) == []
        assert [pull.reactions(comment) for comment in comments] == [["eyes", "+1"]] * len(comments)
        assert len(pull.comments_by(BOT)) == len(comments)


async def hangs_or_rests(engine: Engine, hang: Fault, hits: int) -> bool:
    """Say whether GitHub holds more than `hits` requests, or a job waits for its time and none runs."""
    if hang.hits > hits:
        return True
    (row,) = await engine.database.connector.execute_query_all_async(AT_REST)
    return bool(row["at_rest"])


async def states(engine: Engine) -> list[str]:
    rows = await engine.database.connector.execute_query_all_async(STATES)
    return [str(row["status"]) for row in rows]
