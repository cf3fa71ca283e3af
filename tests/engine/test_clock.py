"""Deadlines survive a clock that was wrong for a while, and the metric of waiting jobs is right."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from procrastinate import App
from procrastinate.testing import InMemoryConnector

from bot.engine.jobs.journal import Journal
from bot.engine.processor import ErrorKind, NobodyWatches
from bot.engine.sql.transactions import Connector
from bot.engine.upkeep import restart_waits
from bot.engine.worker.guard import Guard
from bot.engine.worker.timers import EngineTimers, LatestTicks
from tests.engine.running import LOCK, opened, running, settled
from tests.engine.toy import World, body
from tests.waiting import until

EVENT = "issue_comment"
TWO_HOURS = 7200.0


async def no_tick(_: str, __: int) -> None:
    """Do nothing at a tick."""


@dataclass
class Clock:
    """A clock that is wrong and stands still until it is set: a wait measured with it does not end before."""

    shown: float | None

    def __call__(self) -> float:
        return time.time() if self.shown is None else self.shown


@pytest.mark.parametrize("days", [0.3, 7.0])
async def test_a_clock_that_jumps_ahead_makes_each_timer_tick_once(sqlite_url: str, days: float) -> None:
    async def work() -> None: ...

    crons = {"minutely": "* * * * *", "hourly": "7 * * * *", "daily": "17 2 * * *"}
    app = App(connector=InMemoryConnector())
    timers = EngineTimers(app, cast("Connector", app.connector), Guard(), lambda _: ErrorKind.OTHER, NobodyWatches())
    for name, cron in crons.items():
        timers.add(name, cron, work, at_start=False)
    ticks = LatestTicks(app.periodic_registry, no_tick)
    moment = 1_800_000_000.0

    def names(moment: float) -> list[str]:
        return sorted(task.periodic_id for task, _ in ticks.get_previous_tasks(moment))

    assert names(moment) == sorted(crons)
    assert names(moment + 60) == ["minutely"]
    jumped = moment + days * 86400
    assert names(jumped) == sorted(crons if days > 1 else crons.keys() - {"daily"})
    assert names(jumped) == []
    assert names(jumped - 7200) == [], "a clock that is set back repeats nothing"
    assert names(jumped + 60) == ["minutely"]


@given(
    start=st.integers(1_700_000_000, 1_900_000_000),
    steps=st.lists(st.floats(-1e6, 1e6), max_size=10),
    minutes=st.integers(1, 30),
)
def test_a_timer_never_ticks_twice_at_a_time_and_only_for_its_latest_moment(
    start: int, steps: list[float], minutes: int
) -> None:
    app = App(connector=InMemoryConnector())

    async def tick(timestamp: int) -> None: ...

    app.periodic(cron=f"*/{minutes} * * * *", periodic_id="x")(app.task(name="tick")(tick))
    ticks = LatestTicks(app.periodic_registry, no_tick)
    clock, last = float(start), 0
    for step in [0.0, *steps]:
        clock += step
        moments = [moment for _, moment in ticks.get_previous_tasks(clock)]
        assert len(moments) <= 1
        for moment in moments:
            assert max(last, clock - minutes * 60 - 1) <= moment <= clock
            assert moment > last
        last = max([last, *moments])


async def test_a_retry_that_was_scheduled_while_the_clock_was_ahead_is_not_delayed(
    sqlite_url: str, world: World
) -> None:
    clock = Clock(time.time() + TWO_HOURS)
    script = {"effects": [{"target": "x", "errors": ["again:1"]}]}
    async with running(sqlite_url, world, clock=clock) as engine:
        await engine.accept("g", EVENT, body({"a": script}), LOCK)

        async def waits() -> bool:
            record = await engine.journal.delivery("g")
            return record is not None and any(job.next_try for job in record.jobs)

        await until(waits)
        clock.shown = None
        (record,) = await settled(engine, "g")
    assert record.state == "done"


async def test_a_wait_that_began_in_the_future_begins_now_and_others_stay(database_url: str, world: World) -> None:
    """This works in every process, even one that starts after the clock was set back."""
    async with running(database_url, world) as engine:
        for guid in ("ahead", "right"):
            script = {"effects": [{"target": "x", "errors": ["again:900"]}]}
            await engine.accept(guid, EVENT, body({"a": script}), f"pr:1#{guid}")
        waits_before = await until(lambda: _waits(engine.journal, "ahead", "right"))
    async with opened(database_url) as command:
        connector = command.database.connector
        await connector.execute_query_async(
            "UPDATE nightjar_notes SET at = at + 7200 WHERE job_id IN"
            " (SELECT id FROM procrastinate_jobs WHERE lock = 'pr:1#ahead' AND status = 'todo')"
        )
        await connector.execute_query_async(
            "UPDATE procrastinate_jobs SET scheduled_at = to_timestamp(date_part('epoch', scheduled_at) + 7200)"
            " WHERE lock = 'pr:1#ahead' AND status = 'todo'"
        )
        assert len(await restart_waits(connector)) == 1
        assert await restart_waits(connector) == []
        waits_after = await _waits(command.journal, "ahead", "right")
        assert waits_after is not None
        assert isinstance(waits_before, list)
        assert waits_after[0] == pytest.approx(waits_before[0], abs=60)
        assert waits_after[1] == waits_before[1]


async def _waits(journal: Journal, *guids: str) -> list[float] | None:
    """Return when each delivery's effect is tried again, once all of them wait."""
    records = [await journal.delivery(guid) for guid in guids]
    waits = [job.next_try for record in records if record for job in record.jobs if job.next_try]
    return waits if len(waits) == len(guids) else None


async def test_a_delivery_that_seems_to_come_from_the_future_counts_as_waiting(sqlite_url: str) -> None:
    async with opened(sqlite_url) as engine:
        await engine.accept("g", EVENT, body({}), LOCK)
        connector = engine.database.connector
        await connector.execute_query_async(
            "UPDATE procrastinate_jobs SET args = json_set(args, '$.received_at', 4102444800.0)"
        )
        first, second = await engine.backlog(), await engine.backlog()
    assert second.oldest_seconds > first.oldest_seconds >= 0.0
