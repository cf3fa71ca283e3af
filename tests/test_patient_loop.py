"""On the clock of the tests' event loop a busy machine costs no time."""

from __future__ import annotations

import asyncio

import pytest

from tests.patient_loop import MOST, PatientLoop, advance
from tests.waiting import DEADLINE


class SlowMachine:
    """A clock that goes on only when the test says so."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_all_tests_run_on_it() -> None:
    async def kind() -> type[asyncio.AbstractEventLoop]:
        return type(asyncio.get_running_loop())

    with asyncio.Runner(loop_factory=PatientLoop) as runner:
        assert runner.run(kind()) is PatientLoop


async def test_this_one_runs_on_it() -> None:
    assert type(asyncio.get_running_loop()) is PatientLoop


def test_computing_for_minutes_ends_no_time_limit() -> None:
    machine = SlowMachine()

    async def work() -> None:
        async with asyncio.timeout(1.0):
            for _ in range(10):
                machine.now += 60.0
                await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=lambda: PatientLoop(machine)) as runner:
        runner.run(work())
        assert runner.get_loop().time() <= 1000.0 + 12 * MOST


def test_a_time_limit_ends_what_waits() -> None:
    async def work() -> None:
        async with asyncio.timeout(0.01):
            await asyncio.Event().wait()

    with asyncio.Runner(loop_factory=PatientLoop) as runner, pytest.raises(TimeoutError):
        runner.run(work())


async def test_a_test_may_let_a_limit_end_at_once() -> None:
    waiting = asyncio.create_task(asyncio.wait_for(asyncio.Event().wait(), DEADLINE))
    await asyncio.sleep(0)
    advance(DEADLINE)
    with pytest.raises(TimeoutError):
        await waiting


def test_its_clock_never_goes_back() -> None:
    machine, moments = SlowMachine(), list[float]()

    async def work() -> None:
        for _ in range(10):
            moments.append(asyncio.get_running_loop().time())
            machine.now += 60.0
            moments.append(asyncio.get_running_loop().time())
            await asyncio.sleep(0)

    with asyncio.Runner(loop_factory=lambda: PatientLoop(machine)) as runner:
        runner.run(work())
    assert moments == sorted(moments)
