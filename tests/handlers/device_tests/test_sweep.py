"""What time does to jobs, even after a crash and after a change of app.yaml."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

import pytest

from bot.app.load import parse_config
from bot.engine.database import Database
from bot.engine.jobs.journal import Journal
from handlers.device_tests.model import QUEUE_SECONDS, DeviceJobState, JobEnd, ShownStep
from handlers.device_tests.store import JobStore
from handlers.device_tests.sweep import JobSweep
from tests.handlers.device_tests.cases import NOW, new_job

CONFIG = """
repositories:
  {name}:
    results: {{bucket: device-results, labs: {{example-lab: {{targets: {targets}}}}}}}
"""


class Sweeper:
    """A sweep whose announcements are collected as the engine collects them: once for each GUID."""

    def __init__(self, database: Database) -> None:
        self.now = NOW
        self.store = JobStore(database.connector, lambda: self.now)
        self.journal = Journal(database.connector)
        self.announced: dict[str, int] = {}

    async def accept(self, guid: str, event: str, body: str, lock: str, *, not_before: float | None = None) -> bool:
        new = guid not in self.announced
        self.announced.setdefault(guid, json.loads(body)["device-job"]["step"])
        return new

    async def tick(self, targets: str = "{hexagon-v73: {tier: 2}}", name: str = "octocat/compiler") -> None:
        config = parse_config(CONFIG.format(name=name, targets=targets).encode(), "app.yaml")
        await JobSweep(config, self.store, self.journal, accept=self.accept, clock=lambda: self.now).tick()

    async def state(self) -> tuple[DeviceJobState, JobEnd]:
        job = await self.store.find("example-lab", "job")
        return job.state, job.end


@pytest.fixture
async def sweeper(url_with_tables: str) -> AsyncIterator[Sweeper]:
    database = Database(url_with_tables)
    await database.open()
    new_sweeper = Sweeper(database)
    await new_sweeper.store.submit(new_job(), approval_needed=False)
    yield new_sweeper
    await database.close()


async def test_a_check_run_that_was_not_announced_before_a_crash_is_announced(sweeper: Sweeper) -> None:
    await sweeper.tick()
    assert list(sweeper.announced.values()) == [ShownStep.QUEUED]
    await sweeper.store.show("example-lab", "job", ShownStep.QUEUED)
    await sweeper.tick()
    assert len(sweeper.announced) == 1


@pytest.mark.parametrize("targets", ["{hexagon-v73: nightly}", "[adreno]"])
async def test_jobs_of_a_target_removed_from_app_yaml_end(sweeper: Sweeper, targets: str) -> None:
    await sweeper.store.show("example-lab", "job", ShownStep.QUEUED)
    await sweeper.tick(targets)
    assert await sweeper.state() == (DeviceJobState.ENDED, JobEnd.TARGET_REMOVED)
    assert list(sweeper.announced.values()) == [ShownStep.ENDED]


async def test_jobs_of_a_repository_removed_from_app_yaml_end(sweeper: Sweeper) -> None:
    await sweeper.store.show("example-lab", "job", ShownStep.QUEUED)
    await sweeper.tick(name="octocat/other")
    assert await sweeper.state() == (DeviceJobState.ENDED, JobEnd.TARGET_REMOVED)
    assert list(sweeper.announced.values()) == [ShownStep.ENDED]


async def test_jobs_that_waited_too_long_end(sweeper: Sweeper) -> None:
    sweeper.now += QUEUE_SECONDS - 1
    await sweeper.tick()
    assert await sweeper.state() == (DeviceJobState.QUEUED, JobEnd.NONE)
    sweeper.now += 1
    await sweeper.tick()
    assert await sweeper.state() == (DeviceJobState.ENDED, JobEnd.NO_DEVICE)
