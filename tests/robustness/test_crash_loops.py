"""A process that something outside kills again and again: no job is blamed for it, and nothing is lost."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import LiteralString

import pytest

from bot.engine.service import Engine
from tests.engine.replica import replica
from tests.engine.running import QUICK, opened, settled
from tests.engine.toy import World, body
from tests.waiting import until

KILLS = 11
LOAD = 24
"""Deliveries; every third of them waits for the one before, under the same lock."""
GITHUB = "github answers"
PACE = replace(QUICK, stalled=0.6, min_age=2.0)

RUNNABLE: LiteralString = """
SELECT count(*) AS jobs FROM procrastinate_jobs
 WHERE status = 'doing' OR (status = 'todo' AND (scheduled_at IS NULL OR scheduled_at <= now()))
"""
STATES: LiteralString = "SELECT status, count(*) AS jobs FROM procrastinate_jobs GROUP BY status"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    """Return a world without events."""
    with closing(World(tmp_path / "world.db")) as made:
        yield made


async def has_begun_what_it_can(engine: Engine, world: World, process: int) -> bool:
    if any(pid == process for _, _, pid in world.moments("")):
        return True
    (row,) = await engine.database.connector.execute_query_all_async(RUNNABLE)
    return row["jobs"] == 0


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
            async with replica(database_url, tmp_path / "world.db", PACE) as it:
                await until(partial(has_begun_what_it_can, engine, world, it.pid))
                it.kill()
                await it.ended()
        assert not [row for row in await states(engine) if row == "failed"]
        world.passed(GITHUB)
        async with replica(database_url, tmp_path / "world.db", PACE):
            records = await settled(engine, *guids)
    assert {record.guid: record.state for record in records} == dict.fromkeys(guids, "done")
    written = world.written
    assert sorted(written) == sorted(f"{guid} a {target}" for guid in guids for target in ("x", "y", "end"))


async def states(engine: Engine) -> list[str]:
    rows = await engine.database.connector.execute_query_all_async(STATES)
    return [str(row["status"]) for row in rows]
