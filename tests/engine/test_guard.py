"""A job that crashes or hangs does not stop the others."""

from __future__ import annotations

import asyncio
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.engine.retry import MAX_ALONE
from bot.engine.worker.guard import Busy, Guard, OverTime, Stopping
from tests.engine.running import LOCK, QUICK, running, settled
from tests.engine.toy import World, body


class Work:
    """Work that ends when the test says so, and logs its beginning and end."""

    def __init__(self, log: list[str], name: str) -> None:
        self._log, self._name, self.ending = log, name, asyncio.Event()

    async def __call__(self) -> str:
        self._log.append(f"{self._name} begins")
        await self.ending.wait()
        self._log.append(f"{self._name} ends")
        return self._name


async def begun(guard: Guard, work: Work, *, alone: bool = False) -> asyncio.Task[str]:
    task = asyncio.create_task(guard.run_alone(work) if alone else guard.run(work))
    for _ in range(5):
        await asyncio.sleep(0)  # it gets as far as it can
    return task


async def test_jobs_run_in_parallel_and_a_suspect_runs_alone_in_turn() -> None:
    guard, log = Guard(), list[str]()
    first, second, suspect, later = (Work(log, name) for name in ("one", "other", "suspect", "later"))
    tasks = [await begun(guard, first), await begun(guard, second)]
    tasks.append(await begun(guard, suspect, alone=True))
    tasks.append(await begun(guard, later))
    assert log == ["one begins", "other begins"]
    for work in (first, second, suspect, later):
        work.ending.set()
    assert await asyncio.gather(*tasks) == ["one", "other", "suspect", "later"]
    assert log[2:] == ["one ends", "other ends", "suspect begins", "suspect ends", "later begins", "later ends"]


async def test_a_suspect_gives_way_if_others_take_long() -> None:
    guard, log = Guard(patience=0.01), list[str]()
    slow, suspect, later = (Work(log, name) for name in ("slow", "suspect", "later"))
    running = await begun(guard, slow)
    waiting = await begun(guard, suspect, alone=True)
    behind = await begun(guard, later)
    with pytest.raises(Busy):
        await waiting
    later.ending.set()
    assert await behind == "later", "it runs in parallel to the slow one"
    slow.ending.set()
    await running


async def test_others_may_start_while_a_suspect_takes_long() -> None:
    guard, log = Guard(alone_seconds=0.01), list[str]()
    suspect, later = (Work(log, name) for name in ("suspect", "later"))
    running = await begun(guard, suspect, alone=True)
    behind = await begun(guard, later)
    later.ending.set()
    assert await behind == "later"
    suspect.ending.set()
    await running


async def test_a_job_that_takes_too_long_is_cancelled_and_the_error_names_the_limit() -> None:
    guard, log = Guard(seconds=0.01), list[str]()
    for run in (guard.run, guard.run_alone):
        with pytest.raises(
            OverTime, match=r"^this attempt took longer than 0\.01 seconds, the maximum for one attempt of a job$"
        ):
            await run(Work(log, "endless"))
    assert log == ["endless begins", "endless begins"]


async def test_a_timeout_inside_the_work_is_not_reported_as_the_jobs_time_limit() -> None:
    async def work() -> None:
        raise TimeoutError("GitHub did not answer")

    with pytest.raises(TimeoutError, match="GitHub did not answer"):
        await Guard().run(work)


async def test_a_suspect_that_gives_up_its_turn_blocks_nobody() -> None:
    guard, log = Guard(), list[str]()
    first, suspect, later = (Work(log, name) for name in ("one", "suspect", "later"))
    running = await begun(guard, first)
    waiting = await begun(guard, suspect, alone=True)
    behind = await begun(guard, later)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    later.ending.set()
    assert await behind == "later"
    first.ending.set()
    await running


async def test_a_suspect_ends_at_once_when_its_process_begins_to_stop_and_others_may_finish() -> None:
    guard, log = Guard(alone_seconds=0.0), list[str]()
    suspect, neighbor, later = (Work(log, name) for name in ("suspect", "other", "later"))
    running = await begun(guard, suspect, alone=True)
    beside = await begun(guard, neighbor)
    guard.stop()
    with pytest.raises(Stopping):
        await running
    neighbor.ending.set()
    assert await beside == "other"
    with pytest.raises(Stopping):
        await guard.run_alone(later)
    assert log == ["suspect begins", "other begins", "other ends"]


@given(min_age=st.floats(0.01, 1e3), alone=st.integers(0, MAX_ALONE))
def test_each_process_that_a_suspect_may_have_ended_makes_it_wait_longer_in_the_next(
    min_age: float, alone: int
) -> None:
    guard = Guard(min_age=min_age)
    assert 0.0 < guard.too_young(alone) < guard.too_young(alone + 1)
    assert Guard(min_age=0.0).too_young(alone) == 0.0


async def test_an_endless_job_fails_after_three_tries_and_its_error_names_the_limit(
    sqlite_url: str, tmp_path: Path
) -> None:
    with closing(World(tmp_path / "world.db")) as world:
        async with running(sqlite_url, world, pace=replace(QUICK, job=0.05)) as engine:
            await engine.accept("g", "issue_comment", body({"a": {"takes": 600}}), LOCK)
            (record,) = await settled(engine, "g")
    assert record.state == "failed"
    assert record.reason == "OverTime: this attempt took longer than 0.05 seconds, the maximum for one attempt of a job"
    assert record.plans[0].job.attempts == 3
