"""Several processes on one PostgreSQL, and a database that crashes."""

from __future__ import annotations

import asyncio
import itertools
from functools import partial
from pathlib import Path

import pytest

from bot.engine.service import StorageError, WorkerPace
from tests.engine.replica import replica
from tests.engine.running import LOCK, QUICK, opened, running, settled, twice
from tests.engine.toy import World, body, writes
from tests.postgres import running_server
from tests.waiting import until

EVENT = "issue_comment"
TAKEN_OVER = 30.0
"""Seconds within which the work of a replica that is stopped for good is taken over."""

NEVER = 3600.0
"""Seconds between two polls, where none is to be needed."""


async def test_the_work_of_a_stopped_replica_is_taken_over_within_half_a_minute(
    postgres_url: str, place: Path, world: World
) -> None:
    """This uses the pace of production; the dead replica's pull requests are free again, too."""
    pace = WorkerPace()
    assert pace.stalled + pace.reap + pace.poll <= TAKEN_OVER
    guids = [f"g{n}" for n in range(6)]
    stuck = {"effects": [{"target": "x", "waits_for": "release"}, {"target": "y"}]}
    async with replica(postgres_url, place, WorkerPace()) as stopped:
        for n, guid in enumerate(guids):
            await stopped.send(guid, f"pr:1#{n % 3}", body({"a": stuck}))
        await until(lambda: len(world.moments("effect")) == 3)
        async with replica(postgres_url, place, WorkerPace()):
            stopped.kill()
            world.passed("release")
            async with opened(postgres_url) as outside:
                await settled(outside, *guids)
    assert sorted(world.written) == sorted(f"{guid} a {target}" for guid in guids for target in "xy")


async def test_two_replicas_share_the_work_and_keep_each_pull_request_in_order(
    postgres_url: str, place: Path, world: World
) -> None:
    guids = [f"g{n:02}" for n in range(40)]
    async with (
        replica(postgres_url, place, QUICK),
        replica(postgres_url, place, QUICK),
        opened(postgres_url) as outside,
    ):
        for n, guid in enumerate(guids):
            script = {"effects": [{"target": "x", "takes": 0.005}, {"target": "y"}]}
            await outside.accept(guid, EVENT, body({"a": script}), f"pr:1#{n % 4}")
        await settled(outside, *guids)
    written = world.written
    for number in range(4):
        guids_of_pull = [guid for n, guid in enumerate(guids) if n % 4 == number]
        written_of_pull = [key for key in written if key.split()[0] in guids_of_pull]
        assert written_of_pull == [f"{guid} a {target}" for guid in guids_of_pull for target in "xy"]
    assert len({pid for _, _, pid in world.moments("effect")}) == 2


async def test_a_frozen_replica_that_thaws_repeats_nothing(postgres_url: str, place: Path, world: World) -> None:
    frozen_in = {"effects": [{"target": "x", "waits_for": "freeze"}, {"target": "y"}], "conclude": {}}
    async with replica(postgres_url, place, QUICK) as frozen:
        await frozen.send("g1", LOCK, body({"a": frozen_in}))
        await until(lambda: world.passes("effect g1 a x"))
        frozen.freeze()
        world.passed("freeze")
        async with replica(postgres_url, place, QUICK) as survivor, opened(postgres_url) as outside:
            await outside.accept("g2", EVENT, body({"a": writes("x")}), LOCK)
            await settled(outside, "g1", "g2")
            assert world.written == ["g1 a x", "g1 a y", "g1 a end", "g2 a x"]
            frozen.thaw()
            assert await survivor.stop() == 0
            # It must notice that it was declared dead, and go on working.
            await outside.accept("g3", EVENT, body({"a": writes("x")}), LOCK)
            await settled(outside, "g3")
            (record,) = await settled(outside, "g1")
    assert world.written == ["g1 a x", "g1 a y", "g1 a end", "g2 a x", "g3 a x"]
    assert record.state == "done"
    assert len({pid for name, _, pid in world.moments("effect g1 a x")}) == 2


@pytest.mark.exhaustive
async def test_a_database_crash_under_load_loses_nothing_that_was_acknowledged(world: World) -> None:
    acknowledged: list[str] = []
    numbers = itertools.count()
    with running_server({"fsync": "on", "full_page_writes": "on", "synchronous_commit": "on"}) as server:
        async with running(server.create_database(), world) as engine:

            async def load() -> None:
                while True:
                    guid = f"g{next(numbers)}"
                    script = {"effects": [{"target": "x", "takes": 0.01}, {"target": "y"}], "conclude": {}}
                    try:
                        await engine.accept(guid, EVENT, body({"a": script}), f"pr:1#{len(acknowledged) % 9}")
                    except StorageError:
                        continue
                    acknowledged.append(guid)
                    await asyncio.sleep(0.01)

            loading = asyncio.create_task(load())
            try:
                for enough in (15, 30):
                    await until(partial(more_than, acknowledged, enough))
                    await asyncio.to_thread(server.restart_immediately)
                await until(partial(more_than, acknowledged, len(acknowledged) + 10))
            finally:
                loading.cancel()
                await asyncio.gather(loading, return_exceptions=True)
            records = await settled(engine, *acknowledged)
    assert {record.state for record in records} == {"done"}
    written = world.written
    assert twice(written) == []
    assert set(written) >= {f"{guid} a {target}" for guid in acknowledged for target in ("x", "y", "end")}


def more_than(acknowledged: list[str], count: int) -> bool:
    return len(acknowledged) > count


async def test_twenty_deliveries_of_one_pull_request_follow_each_other_without_a_poll(
    database_url: str, world: World
) -> None:
    """Each job that ends wakes the worker for the next one. `benchmarks/pull_request.py` measures the gaps."""
    guids = [f"g{n}" for n in range(20)]
    async with opened(database_url) as outside:
        for guid in guids:
            await outside.accept(guid, EVENT, body({"a": writes("x")}), LOCK)
    async with running(database_url, world, pace=WorkerPace(poll=NEVER)) as engine:
        await settled(engine, *guids)
    expected = [f"{step} {guid}" for guid in guids for step in ("deliver", "plan", "effect")]
    assert [" ".join(happening.split()[:2]) for happening in world.happenings] == expected
