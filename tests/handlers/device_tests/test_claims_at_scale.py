"""The next job of a lab is the one that sorting the whole queue would find, and finding it reads only a few rows."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest
from nightjar_formats.model import TargetKey

from bot.engine.database import Database
from bot.engine.sql.portable import translate
from bot.engine.sql.transactions import Connector
from handlers.device_tests import rows
from handlers.device_tests.model import DeviceJob, DeviceJobState, JobEnd, Someone
from handlers.device_tests.queue import LastServed, TargetLimits, in_order
from handlers.device_tests.store import ONE_DAY, JobStore
from tests.counted import counted
from tests.devices.picking import pick_job
from tests.handlers.device_tests.cases import HOUR, NOW, new_job, queued
from tests.postgres import PostgresServer  # noqa: F401  (its fixtures)

LAB = "example-lab"
TARGETS = ("hexagon-v73", "adreno", "mali")
REPOSITORIES = {7: "octocat/compiler", 8: "octocat/runtime", 9: "example-lab/models"}
STEPS = 100
FEW, MANY = 30, 1_500
PEOPLE = 10
TOGETHER = 30
"""Jobs that are inserted at once."""


@pytest.fixture
async def database(url_with_tables: str) -> AsyncIterator[Database]:
    """Yield an open database."""
    opened = Database(url_with_tables)
    await opened.open()
    yield opened
    await opened.close()


def limits_of(target: TargetKey) -> TargetLimits | None:
    """Return one or two devices of each target; one repository lacks a target."""
    if (target.repository, target.target) == ("octocat/runtime", "mali"):
        return None
    return TargetLimits(2 if target.target == "adreno" else 1, 2 * HOUR)


@pytest.mark.exhaustive("sqlite-0", "postgresql-1")
@pytest.mark.parametrize("seed", range(4))
async def test_the_database_finds_the_same_job_as_sorting_the_queue(database: Database, seed: int) -> None:
    chance, moment = random.Random(seed), NOW
    store = JobStore(database.connector, lambda: moment)
    leased: list[tuple[DeviceJob, str]] = []
    for step in range(STEPS):
        moment += chance.choice([0.0, 1.0, 60.0, 0.4 * ONE_DAY])
        match chance.randrange(6):
            case 0 | 1 | 2:
                repository_id = chance.choice(list(REPOSITORIES))
                job = new_job(
                    f"job-{step}",
                    repository_id=repository_id,
                    repository=REPOSITORIES[repository_id],
                    pull_request=chance.randrange(4),
                    sha=f"{chance.randrange(3):040x}",
                    target=chance.choice(TARGETS),
                    requested_by=Someone(1 + chance.randrange(3), "hubot"),
                    requested_at=moment,
                )
                await store.submit(job, approval_needed=False)
            case 3 | 4:
                targets = chance.sample(TARGETS, chance.randrange(1, 4))
                open_jobs, served = await store.of_lab(LAB), await store.served(LAB)
                await _check_places(store, open_jobs, served)
                expected = pick_job(open_jobs, targets, limits_of, served)
                claimed = await store.claim(LAB, targets, limits_of)
                found = claimed and (claimed.job.id, claimed.job.slot)
                assert found == (expected and (expected.job.id, expected.slot))
                if claimed is not None:
                    leased.append((claimed.job, claimed.lease))
            case _ if leased:
                job, lease = leased.pop(chance.randrange(len(leased)))
                if chance.random() < 0.5:
                    await store.fail(LAB, job.id, lease, "the device is gone")
                else:
                    await store.cancel(job, JobEnd.BY_PERSON, also_running=True)


async def _check_places(store: JobStore, open_jobs: Sequence[DeviceJob], served: LastServed) -> None:
    """Check the place of each queued job against the order of the whole queue."""
    queue = in_order(open_jobs, served)
    for target in TARGETS:
        running = sum((job.target, job.state) == (target, DeviceJobState.LEASED) for job in open_jobs)
        of_target = [job for job in queue if job.target == target]
        assert [await store.tests_before(job) for job in of_target] == [running + n for n in range(len(of_target))]


@pytest.mark.parametrize("people", [1, PEOPLE])
async def test_a_claim_reads_as_few_rows_of_a_long_queue_as_of_a_short_one(database: Database, people: int) -> None:
    store = JobStore(database.connector, lambda: NOW)
    counts, places = [], list[int]()
    for first, last in ((0, FEW), (FEW, MANY)):
        for start in range(first, last, TOGETHER):
            jobs = [_queued(number, people) for number in range(start, start + TOGETHER)]
            await asyncio.gather(
                *(database.connector.execute_query_all_async(rows.INSERT, **rows.row_of_job(job)) for job in jobs)
            )
        if not database.embedded:
            await database.connector.execute_query_async("ANALYZE nightjar_device_jobs")
        with counted(database.connector) as work:
            assert await store.tests_before(_queued(last - 1, people)) >= last // people - 1
        places.append(work.rows)
        counts.append(
            [
                await rows_read(database.connector, statement, values)
                for statement, values in (
                    (rows.QUEUES, {"lab": LAB, "targets": list(TARGETS)}),
                    (
                        rows.NEXT_OF_QUEUES,
                        {
                            "lab": LAB,
                            "targets": list(TARGETS),
                            "queues": ["octocat/compiler hexagon-v73"],
                            "since": NOW - ONE_DAY,
                        },
                    ),
                    (rows.QUEUED_TARGETS, {"lab": LAB}),
                    (rows.OPEN_TARGETS, {}),
                    (rows.NEEDS_SWEEP, {"now": NOW, "before": 0.0}),
                )
            ]
        )
    short, long = counts
    assert places[0] == places[1] == people + 1
    assert all(after <= 2 * before + 20 for before, after in zip(short, long, strict=True)), (short, long)
    assert (await store.claim(LAB, TARGETS, limits_of)) is not None


def _queued(number: int, people: int) -> DeviceJob:
    person = Someone(1 + number % people, "hubot")
    return queued(f"job-{number}", pull_request=number, requested_by=person, requested_at=NOW + number)


async def rows_read(connector: Connector, statement: Any, values: dict[str, Any]) -> int:
    """Return how many rows PostgreSQL reads, or how many steps SQLite's machine takes in tens, for a statement."""
    if not hasattr(connector, "path"):
        (row,) = await connector.execute_query_all_async("EXPLAIN (ANALYZE, FORMAT JSON) " + statement, **values)
        (plan,) = row["QUERY PLAN"]
        return _rows_of(plan["Plan"])
    steps = 0

    def count() -> None:
        nonlocal steps
        steps += 1

    def run(connection: Any) -> None:
        connection.set_progress_handler(count, 100)
        arguments = {name: json.dumps(value) if isinstance(value, list) else value for name, value in values.items()}
        connection.execute(translate(statement), arguments).fetchall()
        connection.set_progress_handler(None, 0)

    await connector._writer.run(run)  # type: ignore[attr-defined]
    return steps


def _rows_of(plan: dict[str, Any]) -> int:
    own = (plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0)) * plan["Actual Loops"]
    return int(own) + sum(_rows_of(part) for part in plan.get("Plans", ()))
