"""`ready` says what webhooks get: at once after a delivery could not be stored, and at once after that has ended."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from bot.core.errors import StorageError
from bot.engine.service import Engine
from bot.engine.storable import StorageProbe
from tests.engine.running import LOCK, QUICK, running
from tests.engine.toy import Toy, World, body
from tests.waiting import until

LATER = replace(QUICK, reap=3600.0, probe=0.01)
"""A pace at which nothing but the probe notices in time that the database works again."""
FULL = "CREATE TRIGGER full BEFORE INSERT ON nightjar_inbox BEGIN SELECT RAISE(ABORT, 'the disk is full'); END"


async def test_while_deliveries_cannot_be_stored_it_is_not_ready_and_afterwards_it_is_at_once(
    sqlite_url: str, world: World
) -> None:
    async with running(sqlite_url, world, pace=LATER) as engine:
        assert engine.ready() is None
        await engine.database.connector.execute_query_async(FULL)
        with pytest.raises(StorageError):
            await engine.accept("lost", "push", body({}), LOCK)
        assert engine.ready() == "deliveries cannot be stored (IntegrityError)"
        await asyncio.gather(*(asyncio.sleep(0) for _ in range(100)))
        assert engine.ready() is not None
        await engine.database.connector.execute_query_async("DROP TRIGGER full")
        await until(lambda: engine.ready() is None)
        assert await engine.accept("stored", "push", body({}), LOCK)


async def test_a_locked_table_of_jobs_makes_it_not_ready_until_it_is_unlocked(postgres_url: str, world: World) -> None:
    engine = Engine(postgres_url, Toy(world), pace=LATER, accept_timeout=1.0)
    async with engine, await psycopg.AsyncConnection.connect(postgres_url) as connection:
        work = asyncio.create_task(engine.run())
        await until(lambda: engine.ready() is None)
        await connection.execute("LOCK TABLE procrastinate_jobs IN SHARE MODE")
        with pytest.raises(StorageError):
            await engine.accept("lost", "push", body({}), LOCK)
        assert engine.ready() == "deliveries cannot be stored (TimeoutError)"
        await connection.rollback()
        await until(lambda: engine.ready() is None)
        await engine.stop()
        await work


async def test_a_worker_that_failed_starts_as_soon_as_the_database_stores_again(sqlite_url: str, world: World) -> None:
    async with running(sqlite_url, world, pace=LATER) as engine:
        connector = engine.database.connector
        await connector.execute_query_async(FULL)
        refuse = FULL.replace(
            "full BEFORE INSERT ON nightjar_inbox", "no_worker BEFORE INSERT ON procrastinate_workers"
        )
        await connector.execute_query_async(refuse)
        with pytest.raises(StorageError):
            await engine.accept("lost", "push", body({}), LOCK)
        assert engine._supervisor is not None
        engine._supervisor._restart()
        await until(lambda: engine._supervisor is not None and engine._supervisor.problem is not None)
        await connector.execute_query_async("DROP TRIGGER no_worker")
        await connector.execute_query_async("DROP TRIGGER full")
        await until(lambda: engine.ready() is None)


async def test_the_probe_tries_until_it_succeeds_and_then_no_more(tmp_path: Path) -> None:
    answers, tries, recoveries = [StorageError("one"), StorageError("two"), None], 0, 0

    async def store() -> None:
        nonlocal tries
        tries += 1
        if (answer := answers[tries - 1]) is not None:
            raise answer

    def recovered() -> None:
        nonlocal recoveries
        recoveries += 1

    probe = StorageProbe(store, recovered, 0.0)
    probe.succeeded()
    assert (probe.problem, recoveries) == (None, 0)
    probe.failed("disk")
    assert probe.problem == "deliveries cannot be stored (disk)"
    await until(lambda: probe.problem is None)
    assert (tries, recoveries) == (3, 1)
    probe.failed("again")
    await probe.close()
    assert probe.problem == "deliveries cannot be stored (again)"
