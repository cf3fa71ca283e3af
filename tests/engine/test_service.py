"""The engine as the web server and the commands use it."""

from __future__ import annotations

import asyncio
import io
import logging
import math
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace

import pytest
import structlog

from bot.core import logs
from bot.engine.database import DatabaseError
from bot.engine.jobs.once import NewJob, defer_once
from bot.engine.service import Backlog, Engine, StorageError
from bot.engine.upkeep import remove_old
from tests.engine.running import LOCK, QUICK, opened, running, settled
from tests.engine.toy import Toy, World, body, writes
from tests.postgres import running_server
from tests.waiting import DEADLINE, until

EVENT = "issue_comment"


class Heard:
    """An observer that records its calls."""

    def __init__(self) -> None:
        self.all: list[tuple[str, str, str]] = []

    def delivery(self, event: str, outcome: str, seconds: float) -> None:
        assert 0 <= seconds < 60
        self.all.append(("delivery", event, outcome))

    def handler(self, name: str, outcome: str, seconds: float) -> None:
        self.all.append(("handler", name, outcome))

    def effect(self, kind: str, outcome: str, seconds: float) -> None:
        self.all.append(("effect", kind, outcome))


@pytest.mark.one_clock
async def test_one_of_our_own_deliveries_waits_for_its_scheduled_time(url_with_tables: str, world: World) -> None:
    moment = time.time() + 1.0
    async with running(url_with_tables, world) as engine:
        assert await engine.accept("g", EVENT, body({"a": writes("x")}), LOCK, not_before=moment)
        assert not await engine.accept("g", EVENT, body({"a": writes("y")}), LOCK)
        await settled(engine, "g")
    assert world.written == ["g a x"]
    assert time.time() >= moment


async def test_an_accepted_delivery_is_visible_to_another_process(url_with_tables: str, world: World) -> None:
    async with opened(url_with_tables) as web:
        assert await web.accept("g", EVENT, body({"a": writes("x")}), LOCK)
    async with running(url_with_tables, world) as engine:
        await settled(engine, "g")
    assert world.written == ["g a x"]


async def test_a_closed_engine_stores_nothing(sqlite_url: str) -> None:
    async with opened(sqlite_url) as engine:
        pass
    with pytest.raises(StorageError):
        await engine.accept("g", EVENT, "{}", LOCK)


async def test_the_engine_is_ready_while_its_worker_runs(url_with_tables: str, world: World) -> None:
    async with opened(url_with_tables) as idle:
        assert idle.ready() == "the worker has not started"
    async with running(url_with_tables, world) as engine:
        assert engine.ready() is None
    assert engine.ready() == "the worker is not running"


async def test_the_engine_says_that_the_database_is_down_and_works_on_afterwards(world: World) -> None:
    with running_server() as server:
        async with running(server.create_database(), world) as engine:
            await engine.accept("before", EVENT, body({"a": writes("x")}), LOCK)
            await settled(engine, "before")
            server.stop()
            with pytest.raises(StorageError):
                await engine.accept("lost", EVENT, body({"a": writes("x")}), LOCK)
            await until(lambda: engine.ready() is not None)
            server.start()
            await until(lambda: engine.ready() is None)
            assert await engine.accept("after", EVENT, body({"a": writes("x")}), LOCK)
            await settled(engine, "after")
    assert world.written == ["before a x", "after a x"]


async def test_a_file_is_served_by_one_process_and_read_by_many(sqlite_url: str, world: World) -> None:
    async with running(sqlite_url, world) as engine:
        await engine.accept("g", EVENT, body({}), LOCK)
        await settled(engine, "g")
        async with opened(sqlite_url, world) as command:
            assert [record.guid for record in await command.journal.recent()] == ["g"]
            with pytest.raises(DatabaseError, match="in use by another nightjar"):
                await command.recover()


async def test_jobs_that_were_running_are_resumed_before_anything_else(sqlite_url: str, world: World) -> None:
    """As after a crash: the process ends in the middle of an effect."""
    engine = Engine(sqlite_url, Toy(world), pace=replace(QUICK, graceful=0.1))
    await engine.open()
    await engine.recover()
    work = asyncio.create_task(engine.run())
    await engine.accept("g", EVENT, body({"a": {"effects": [{"target": "x", "waits_for": "release"}]}}), LOCK)
    await until(lambda: world.passes("effect g a x"))
    await engine.close()  # from here on nothing of it is stored
    work.cancel()
    await asyncio.gather(work, return_exceptions=True)
    async with opened(sqlite_url, world) as later:
        crashed = await later.journal.delivery("g")
        assert crashed is not None
        assert crashed.state == "working"
        await later.recover()
        recovered = await later.journal.delivery("g")
        assert recovered is not None
        assert recovered.state == "waiting"


async def test_a_graceful_stop_lets_running_jobs_end_and_starts_no_others(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        await engine.accept(
            "g", EVENT, body({"a": {"effects": [{"target": "x", "waits_for": "stop"}, {"target": "y"}]}}), LOCK
        )
        await until(lambda: world.passes("effect g a x"))
        await engine.stop()
        world.passed("stop")
        await until(lambda: world.written)
        await until(lambda: engine.ready() is not None)
        assert world.written == ["g a x"]
    async with running(url_with_tables, world) as engine:
        await settled(engine, "g")
    assert world.written == ["g a x", "g a y"]
    assert world.passes("effect g a x") == 1


async def test_a_job_that_takes_longer_than_the_stop_returns_to_the_queue(url_with_tables: str, world: World) -> None:
    script = {"effects": [{"target": "x", "waits_for": "release"}]}
    async with running(url_with_tables, world, pace=replace(QUICK, graceful=0.1)) as engine:
        await engine.accept("g", EVENT, body({"a": script}), LOCK)
        await until(lambda: world.passes("effect g a x"))
    world.passed("release")
    async with running(url_with_tables, world) as engine:
        (record,) = await settled(engine, "g")
    assert record.state == "done"
    assert world.written == ["g a x"]


async def test_the_observer_is_called_for_every_step(url_with_tables: str, world: World) -> None:
    heard = Heard()
    async with running(url_with_tables, world, observer=heard) as engine:
        script = {"effects": [{"target": "x", "errors": ["again:0"]}, {"target": "y", "always": "user"}]}
        script["effects"].append({"target": "z", "always": "refused"})
        await engine.accept("g1", EVENT, body({"a": script, "b": {"always": "payload"}}), LOCK)
        await engine.accept("g2", EVENT, body({}), LOCK)
        await settled(engine, "g1", "g2")
    assert sorted(heard.all) == [
        ("delivery", EVENT, "ignored"),
        ("delivery", EVENT, "routed"),
        ("effect", "Write", "applied"),
        ("effect", "Write", "failed"),
        ("effect", "Write", "refused"),
        ("effect", "Write", "retrying"),
        ("handler", "a", "planned"),
        ("handler", "b", "failed"),
    ]


async def test_the_backlog_is_the_number_of_waiting_jobs_and_the_age_of_the_oldest(url_with_tables: str) -> None:
    async with opened(url_with_tables) as engine:
        assert await engine.backlog() == Backlog(waiting={}, oldest_seconds=0.0)
        await engine.accept("g1", EVENT, body({}), LOCK)
        await engine.accept("g2", EVENT, body({}), LOCK)
        backlog = await engine.backlog()
    assert backlog.waiting == {"deliver": 2}
    assert 0 <= backlog.oldest_seconds < 60


@pytest.fixture
def unlogged() -> Iterator[None]:
    """Restore the process's logging, which `logs.configure` and this test change."""
    loggers = [logging.getLogger(name) for name in ("", "procrastinate", "asyncio")]
    levels, handlers = [logger.level for logger in loggers], loggers[0].handlers[:]
    yield
    for logger, level in zip(loggers, levels, strict=True):
        logger.setLevel(level)
    loggers[0].handlers[:] = handlers
    logging.captureWarnings(False)
    structlog.reset_defaults()


@pytest.mark.usefixtures("unlogged")
async def test_every_log_line_names_the_delivery_and_none_contains_its_body(sqlite_url: str, world: World) -> None:
    written = io.StringIO()
    logs.configure(stream=written, pretty=False)
    logging.getLogger("procrastinate").setLevel(logging.DEBUG)
    logging.getLogger().setLevel(logging.DEBUG)
    handlers = {"a": writes("x"), "c": {"always": "payload", "answer": {}}}
    async with running(sqlite_url, world) as engine:
        await engine.accept("the-guid", EVENT, body(handlers, title="words of the body"), LOCK)
        await settled(engine, "the-guid")
    lines = written.getvalue().splitlines()
    assert [line for line in lines if "procrastinate" in line]
    assert any('"delivery": "the-guid"' in line and "pull_request.head.sha" in line for line in lines)
    assert all('"delivery": "the-guid"' in line for line in lines if '"job"' in line and "timer" not in line)
    assert [line for line in lines if "words of the body" in line] == []


async def test_a_timer_runs_once_for_each_tick_whatever_the_number_of_replicas(postgres_url: str, world: World) -> None:
    async def tick() -> None:
        world.happened("tick")

    began = time.time()
    engines = [Engine(postgres_url, Toy(world), pace=QUICK) for _ in range(3)]
    works = []
    for engine in engines:
        engine.every("each-second", "* * * * * *", tick)
        await engine.open()
        works.append(asyncio.create_task(engine.run()))
    await until(lambda: len(world.happenings) >= 3)
    for engine, work in zip(engines, works, strict=True):
        await engine.stop()
        await work
        await engine.close()
    assert len(world.happenings) <= math.ceil(time.time() - began) + 1


async def test_the_oldest_worker_checks_for_work_and_after_its_end_the_next_one(
    postgres_url: str, world: World
) -> None:
    """Each replica asked GitHub, and listed all buckets."""
    engines = [Engine(postgres_url, Toy(world), pace=QUICK) for _ in range(2)]
    works = []

    def checking(number: int) -> Callable[[], Awaitable[bool]]:
        async def check() -> bool:
            world.happened(str(number))
            return False

        return check

    async def nothing() -> None:
        world.happened("ran")

    for number, engine in enumerate(engines):
        engine.every("each-second", "* * * * * *", nothing, has_work=checking(number))
        await engine.open()
        works.append(asyncio.create_task(engine.run()))
        await until(lambda engine=engine: engine.ready() is None)  # type: ignore[misc]
    await until(lambda: len(world.happenings) >= 2)
    assert set(world.happenings) == {"0"}
    await engines[0].stop()
    await works[0]
    await until(lambda: "1" in world.happenings)
    await engines[1].stop()
    await works[1]
    for engine in engines:
        await engine.close()


async def test_a_lagging_replica_repeats_a_tick_and_nothing_runs_twice(url_with_tables: str, world: World) -> None:
    """Procrastinate forgets the ticks before the newest one, so a replica that thaws may repeat them."""

    async def nightly() -> None:
        world.happened("nightly")

    engine = Engine(url_with_tables, Toy(world), pace=QUICK)
    engine.every("nightly", "0 0 1 1 *", nightly)
    async with engine:
        work = asyncio.create_task(engine.run())
        for n in range(2):
            tick = NewJob(key=f"tick {n}", task="tick", args={"name": "nightly", "timestamp": 1_000_000})
            await defer_once(engine.database.connector, [tick])
            await _idle(engine)
        await engine.stop()
        await work
    assert world.happenings == ["nightly"]


async def _idle(engine: Engine) -> None:
    async def nothing_left() -> bool:
        query = "SELECT id FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
        return not await engine.database.connector.execute_query_all_async(query)

    await until(nothing_left)


async def test_a_timer_can_run_at_start_and_is_tried_again(url_with_tables: str, world: World) -> None:
    async def sweep() -> str:
        if not world.passed("sweep"):
            raise TimeoutError("GitHub does not answer")
        world.happened("swept")
        return "nothing was missed"

    engine = Engine(url_with_tables, Toy(world), pace=QUICK)
    engine.every("sweep", "0 0 1 1 *", sweep, at_start=True)
    async with engine:
        work = asyncio.create_task(engine.run())
        await until(lambda: world.happenings == ["swept"])
        await engine.stop()
        await work


async def test_a_start_timer_runs_at_every_start_even_soon_after_the_last(url_with_tables: str, world: World) -> None:
    for _ in range(2):
        swept = asyncio.Event()

        async def sweep(swept: asyncio.Event = swept) -> None:
            swept.set()

        engine = Engine(url_with_tables, Toy(world), pace=QUICK)
        engine.every("sweep", "0 0 1 1 *", sweep, at_start=True)
        async with engine:
            work = asyncio.create_task(engine.run())
            await asyncio.wait_for(swept.wait(), DEADLINE)
            await engine.stop()
            await work


async def test_the_first_tick_is_skipped_if_it_is_before_the_run_at_the_start(
    url_with_tables: str, world: World
) -> None:
    """Procrastinate's worker ticks for the moment before its start; after a later tick, the clock was set back."""
    engine = Engine(url_with_tables, Toy(world), pace=QUICK)

    async def sweep() -> None:
        world.happened("swept")

    engine.every("sweep", "0 0 1 1 *", sweep, at_start=True)
    swept = []
    async with engine:
        work = asyncio.create_task(engine.run())
        await until(lambda: world.happenings)
        for number, moment in enumerate((1_000_000, 2_000_000)):
            tick = NewJob(key=f"tick {number}", task="tick", args={"name": "sweep", "timestamp": moment})
            await defer_once(engine.database.connector, [tick])
            await _idle(engine)
            swept.append(len(world.happenings))
        await engine.stop()
        await work
    assert swept == [1, 2]


async def test_a_failed_job_is_stored_with_its_explanation_and_the_rest_is_removed(
    url_with_tables: str, world: World
) -> None:
    effects = [{"target": "x"}, {"target": "y", "always": "user"}]
    async with running(url_with_tables, world) as engine:
        await engine.accept("fine", EVENT, body({"a": writes("x")}), LOCK)
        await engine.accept("failed", EVENT, body({"a": {"effects": effects}, "b": {"always": "payload"}}), LOCK)
        _, failed = await settled(engine, "fine", "failed")
        await _age(engine, days=8)
        await remove_old(engine.database.connector)
        assert await engine.journal.recent() == [failed]
        await _age(engine, days=31)
        for _ in range(2):  # what failed, then the records that explain it
            await remove_old(engine.database.connector)
        assert await engine.journal.recent() == []


async def _age(engine: Engine, *, days: int) -> None:
    await engine.database.connector.execute_query_async(
        "UPDATE procrastinate_events SET at = to_timestamp(%(at)s)", at=time.time() - days * 86400
    )


IGNORED = {"text": "nobody wants it", "about": {"action": "created"}}


async def test_a_delivery_that_no_handler_accepts_has_no_job_until_it_is_replayed(
    url_with_tables: str, world: World
) -> None:
    heard = Heard()
    async with running(url_with_tables, world, observer=heard) as engine:
        assert await engine.accept("g", EVENT, body({"a": writes("x")}), LOCK, ignored=IGNORED)
        assert not await engine.accept("g", EVENT, body({"a": writes("x")}), LOCK)
        (record,) = await settled(engine, "g")
        assert (record.state, record.action, record.reason) == ("ignored", "created", "nobody wants it")
        assert (await engine.backlog()).waiting.get("deliver", 0) == 0
        assert world.written == []
        await engine.replay("g")
        (record,) = await settled(engine, "g")
    assert [plan.handler for plan in record.plans] == ["a"]
    assert world.written == ["g a x"]
    assert heard.all[0] == ("delivery", EVENT, "ignored")
