"""A day of labs, pull requests and faults: no job is lost or runs twice at a time, and no check run stays pending.

`python -m benchmarks.devices` has a month of fifty labs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from bot.engine.database import Database
from handlers.device_tests.model import DeviceJob
from handlers.device_tests.store import JobStore
from tests.devices.github import MOST_WRITES
from tests.devices.simulation import Simulation
from tests.devices.world import Rates, Size
from tests.tables import with_tables

DAY = Size(labs=5, targets=40, pulls_a_day=100, days=1)
HARSH = Rates(
    requested=0.5,
    pushes=2.0,
    lost_call=0.1,
    agent_dies=0.2,
    partition=0.2,
    device_fails=0.1,
    too_long=0.05,
    raced=0.5,
    sweep_away=4.0,
    config_changed=4.0,
    write_fails=0.1,
)


class Replica(JobStore):
    """A replica whose changes wake the agents of the simulation."""

    wake: Callable[[DeviceJob], None]

    def _ring(self, job: DeviceJob) -> None:
        super()._ring(job)
        self.wake(job)


@pytest.mark.parametrize("seed", range(3))
async def test_a_day_with_faults_loses_nothing_and_leaves_no_check_pending(seed: int) -> None:
    simulation = Simulation(Size(5, 40, 100, 1, seed))
    outcome = await simulation.run()
    assert outcome.wrong == []
    assert simulation.checks.fourth_writes == []
    assert max(map(len, simulation.checks.steps.values())) == MOST_WRITES
    assert outcome.pulls > 70
    assert outcome.tests >= len(simulation.uploaded) > 50


async def test_a_day_on_which_everything_fails_leaves_no_check_pending() -> None:
    simulation = Simulation(replace(DAY, seed=1), HARSH)
    outcome = await simulation.run()
    assert outcome.wrong == []
    faults = {name for name, count in outcome.faults.items() if count}
    assert len(faults) == 14, faults


@pytest.mark.exhaustive
async def test_writes_beyond_the_limits_wait() -> None:
    simulation = Simulation(Size(20, 200, 500, 1, tick=60.0), Rates(tier_1=4.0))
    outcome = await simulation.run()
    assert outcome.wrong == []
    assert 400 <= simulation.checks.most_in_hour <= 450
    assert max(simulation.checks.waits) > 30


@pytest.mark.exhaustive
async def test_the_same_seed_gives_the_same_day() -> None:
    first, second = Simulation(DAY, HARSH), Simulation(DAY, HARSH)
    assert await first.run() == await second.run()
    assert first.checks.moments == second.checks.moments


async def test_two_replicas_share_a_database_without_loss(tmp_path: Path) -> None:
    url = with_tables(f"sqlite:///{tmp_path}/nightjar.db")
    databases = [Database(url) for _ in range(2)]
    for database in databases:
        await database.open()
    simulation = Simulation(Size(5, 40, 100, 1, tick=300.0))
    replicas = [Replica(database.connector, simulation.clock) for database in databases]
    for replica in replicas:
        replica.wake = simulation.wake
    simulation.use(replicas)
    outcome = await simulation.run()
    for database in databases:
        await database.close()
    assert outcome.wrong == []
    assert outcome.tests >= len(simulation.uploaded) > 50
