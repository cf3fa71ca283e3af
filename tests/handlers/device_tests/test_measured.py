"""Metrics of jobs, by target."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest
from nightjar_formats.model import TargetKey

from bot.engine.database import Database
from handlers.device_tests.measured import WINDOW, MeasuredTarget, measure_jobs
from handlers.device_tests.model import LEASE_SECONDS, OPEN, QUEUE_SECONDS, DeviceJobState
from handlers.device_tests.store import JobStore
from tests.handlers.device_tests.cases import HOUR, NOW, limits, new_job
from tests.postgres import PostgresServer  # noqa: F401  (its fixtures)

LAB = "example-lab"
TARGET = TargetKey("octocat/compiler", LAB, "hexagon-v73")


class Measured:
    """Jobs in a database, and a clock."""

    def __init__(self, database: Database) -> None:
        self.now = NOW
        self.connector = database.connector
        self.store = JobStore(database.connector, lambda: self.now)

    async def submit(self, name: str, *, approval_needed: bool = False) -> None:
        job = new_job(name, pull_request=sum(map(ord, name)), requested_at=self.now)
        await self.store.submit(job, approval_needed=approval_needed)

    async def claim(self) -> None:
        assert await self.store.claim(LAB, [TARGET.target], limits()) is not None

    async def read(self) -> MeasuredTarget:
        targets = await measure_jobs(self.connector, [LAB], self.now)
        assert set(targets) <= {TARGET}
        return targets.get(TARGET) or MeasuredTarget()


@pytest.fixture
async def measured(url_with_tables: str) -> AsyncIterator[Measured]:
    database = Database(url_with_tables)
    await database.open()
    yield Measured(database)
    await database.close()


async def test_without_jobs_there_are_no_metrics(measured: Measured) -> None:
    assert await measured.read() == MeasuredTarget()


async def test_open_jobs_are_counted_by_state_with_the_age_of_the_oldest_queued_one(measured: Measured) -> None:
    await measured.submit("approval", approval_needed=True)
    await measured.submit("first")
    measured.now += 60
    await measured.claim()
    await measured.submit("second")
    measured.now += 90
    await measured.submit("third")
    target = await measured.read()
    assert target.states == dict.fromkeys(OPEN, 0) | {
        DeviceJobState.WAITING: 1,
        DeviceJobState.QUEUED: 2,
        DeviceJobState.LEASED: 1,
    }
    assert (target.oldest, target.claim) == (90.0, 60.0)
    assert (target.repeated, target.unanswered) == (0, 0)


async def test_a_lab_that_crashes_shows_as_hand_outs_and_as_a_job_without_an_answer(measured: Measured) -> None:
    await measured.submit("job")
    for attempt in range(3):
        measured.now += 10
        await measured.claim()
        assert (await measured.read()).repeated == attempt
        measured.now += LEASE_SECONDS
        await measured.store.expire()
    target = await measured.read()
    assert (target.repeated, target.unanswered, target.claim) == (2, 1, None)
    measured.now += WINDOW + HOUR
    assert await measured.read() == MeasuredTarget()


async def test_a_job_that_no_lab_claimed_counts_as_unanswered(measured: Measured) -> None:
    await measured.submit("job")
    measured.now += QUEUE_SECONDS
    await measured.store.expire()
    assert (await measured.read()).unanswered == 1
