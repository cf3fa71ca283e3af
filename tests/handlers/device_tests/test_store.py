"""Jobs in the database, on SQLite and on PostgreSQL, with several replicas at once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from bot.engine.database import Database
from handlers.device_tests.measured import BY_STATE, HANDED_OUT, WITHOUT_ANSWER
from handlers.device_tests.model import LEASE_SECONDS, REFUSED_ENDS, DeviceJob, DeviceJobState, JobEnd, ShownStep
from handlers.device_tests.rows import (
    BY_ID,
    DURATIONS,
    IS_WANTED,
    JOBS_BEFORE,
    NEEDS_SWEEP,
    NEXT_IDLE,
    NEXT_OF_QUEUES,
    OF_LAB,
    OF_PULL,
    OPEN_OF_TARGET,
    OPEN_TARGETS,
    OVERDUE,
    QUEUED_LATELY,
    QUEUED_TARGETS,
    QUEUES,
    REMOVE_OLD,
    REQUESTS,
    SAME_JOB,
    SERVED,
    TESTED_PULL,
    UNSHOWN,
)
from handlers.device_tests.store import (
    ONE_DAY,
    STORED_SECONDS,
    ClaimedJob,
    JobRequests,
    JobStore,
    UnknownJob,
    job_id_of,
    lease_digest,
)
from handlers.device_tests.transitions import LeaseLost, NotHandedOut
from tests.handlers.device_tests.cases import HOUR, HUBOT, NOW, OCTOCAT, OTHER_SHA, SHA, limits, new_job
from tests.postgres import PostgresServer  # noqa: F401  (its fixtures)

LAB, TARGET = "example-lab", "hexagon-v73"
REPLICAS = 4


@pytest.fixture
def clock() -> list[float]:
    return [NOW]


@pytest.fixture
async def replicas(url_with_tables: str, clock: list[float]) -> AsyncIterator[list[JobStore]]:
    """Return the stores of several processes."""
    opened = [Database(url_with_tables) for _ in range(REPLICAS)]
    for database in opened:
        await database.open()
    yield [JobStore(database.connector, lambda: clock[0]) for database in opened]
    for database in opened:
        await database.close()


@pytest.fixture
def jobs(replicas: list[JobStore]) -> JobStore:
    return replicas[0]


async def submit(jobs: JobStore, name: str = "job", *, approval_needed: bool = False, **changes: object) -> DeviceJob:
    """Store a new job."""
    job, new = await jobs.submit(new_job(name, **changes), approval_needed=approval_needed)
    assert new
    return job


async def claim(jobs: JobStore, slots: int = 1) -> ClaimedJob:
    """Claim the next job."""
    claimed = await jobs.claim(LAB, [TARGET], limits(slots))
    assert claimed is not None
    return claimed


async def test_a_job_is_read_as_it_was_written(jobs: JobStore) -> None:
    submitted = await submit(jobs, suites=("operators", "Größe \x00"))
    assert await jobs.find(LAB, "job") == submitted
    claimed = await claim(jobs)
    assert await jobs.find(LAB, "job") == claimed.job
    beat = await jobs.heartbeat(LAB, "job", claimed.lease, log_url="https://example.org/\ud800", note="\x00")
    assert await jobs.find(LAB, "job") == beat


async def test_a_head_has_one_open_job_per_target(jobs: JobStore) -> None:
    first = await submit(jobs, "first")
    assert await jobs.submit(new_job("second", requested_by=OCTOCAT), approval_needed=False) == (first, False)
    assert await jobs.submit(new_job("first"), approval_needed=False) == (first, False)
    await submit(jobs, "other target", target="adreno")
    await submit(jobs, "other head", sha=OTHER_SHA)
    await jobs.cancel(first, JobEnd.BY_PERSON, also_running=True)
    await submit(jobs, "second")
    # A retry of the first request does not create it again.
    ended = await jobs.find(LAB, "first")
    assert await jobs.submit(new_job("first"), approval_needed=False) == (ended, False)


async def test_each_job_is_handed_out_once_and_a_device_runs_one_at_a_time(replicas: list[JobStore]) -> None:
    for number in range(6):
        await submit(replicas[0], f"job {number}", pull_request=number)
    claims = await asyncio.gather(*(store.claim(LAB, [TARGET], limits(4)) for store in replicas * 2))
    claimed = [taken.job for taken in claims if taken is not None]
    assert len(claimed) == 4
    assert max(Counter(job.id for job in claimed).values()) == 1
    assert {job.slot for job in claimed} == {0, 1, 2, 3}


async def test_a_lease_is_stored_as_a_digest(jobs: JobStore) -> None:
    await submit(jobs)
    claimed = await claim(jobs)
    assert (await jobs.find(LAB, "job")).lease == lease_digest(claimed.lease) != claimed.lease


async def test_a_lab_cannot_change_another_labs_job(jobs: JobStore) -> None:
    await submit(jobs)
    assert await jobs.claim("another-lab", [TARGET], limits()) is None
    claimed = await claim(jobs)
    for attempt in (
        jobs.heartbeat("another-lab", "job", claimed.lease),
        jobs.fail("another-lab", "job", claimed.lease, ""),
        jobs.complete("another-lab", "job", "operators"),
        jobs.find(LAB, "no-such-job"),
    ):
        with pytest.raises(UnknownJob):
            await attempt


async def test_an_expired_lease_is_handed_out_again_and_the_old_lease_is_invalid(
    jobs: JobStore, clock: list[float]
) -> None:
    await submit(jobs)
    first = await claim(jobs)
    assert await jobs.expire() == []
    clock[0] += LEASE_SECONDS
    (expired,) = await jobs.expire()
    assert expired.state is DeviceJobState.QUEUED
    second = await claim(jobs)
    assert second.job.run_id != first.job.run_id
    with pytest.raises(LeaseLost):
        await jobs.heartbeat(LAB, "job", first.lease)
    await jobs.heartbeat(LAB, "job", second.lease)


async def test_replicas_expire_a_lease_once(replicas: list[JobStore], clock: list[float]) -> None:
    await submit(replicas[0])
    await claim(replicas[0])
    clock[0] += LEASE_SECONDS
    await asyncio.gather(*(store.expire() for store in replicas))
    assert (await replicas[0].find(LAB, "job")).attempt == 1
    assert (await claim(replicas[0])).job.attempt == 2


async def test_a_failure_and_results_may_be_reported_twice(jobs: JobStore) -> None:
    await submit(jobs)
    with pytest.raises(NotHandedOut):
        await jobs.complete(LAB, "job", "operators")
    first = await claim(jobs)
    failed = await jobs.fail(LAB, "job", first.lease, "the device does not answer")
    assert await jobs.fail(LAB, "job", first.lease, "the device does not answer") == failed
    await claim(jobs)
    done = await jobs.complete(LAB, "job", "operators")
    assert (done.state, done.lease) == (DeviceJobState.DONE, "")
    assert await jobs.complete(LAB, "job", "operators") == done


async def test_approvals_cancellations_and_results_race_without_loss(replicas: list[JobStore]) -> None:
    job = await submit(replicas[0], approval_needed=True)
    assert await replicas[0].claim(LAB, [TARGET], limits()) is None
    await asyncio.gather(*(store.approve(job, SHA, OCTOCAT) for store in replicas))
    assert (await replicas[0].find(LAB, "job")).version == 1
    await claim(replicas[0])
    tasks = [store.complete(LAB, "job", "operators") for store in replicas[:2]]
    tasks += [store.cancel(job, JobEnd.BY_PERSON, also_running=True) for store in replicas[2:]]
    await asyncio.gather(*tasks)
    assert (await replicas[0].find(LAB, "job")).state is DeviceJobState.DONE


async def test_outdated_check_runs_are_found(jobs: JobStore) -> None:
    await submit(jobs, "waiting", target="adreno", approval_needed=True)
    old = await submit(jobs, "old")
    new = await submit(jobs, "new", pull_request=43, requested_at=NOW + 1)
    assert [job.id for job in await jobs.unshown()] == ["new", "old"]
    updated = [await jobs.show(LAB, job.id, ShownStep.QUEUED) for job in (old, new)]
    assert [job.shown for job in updated] == [ShownStep.QUEUED] * 2
    assert await jobs.unshown() == []
    await jobs.remove_target(old)
    assert [(job.id, job.to_show) for job in await jobs.unshown()] == [("old", ShownStep.ENDED)]


async def test_a_commits_pull_request_is_found_once_a_lab_has_got_its_job(jobs: JobStore) -> None:
    job = await submit(jobs)
    assert await jobs.tested_pull(7, job.about, SHA) is None
    await claim(jobs)
    assert await jobs.tested_pull(7, job.about, SHA) == 42
    assert await jobs.tested_pull(8, job.about, SHA) is None
    assert await jobs.tested_pull(7, job.about, OTHER_SHA) is None
    assert await jobs.open_targets() == [job.about]
    assert [open_job.id for open_job in await jobs.open_of_target(job.about)] == ["job"]


async def test_requests_are_counted_for_budgets(jobs: JobStore) -> None:
    await submit(jobs, "yesterday", requested_at=NOW - ONE_DAY)
    await submit(jobs, "mine", pull_request=1)
    await submit(jobs, "other target", pull_request=1, target="adreno")
    await submit(jobs, "theirs", pull_request=2, requested_by=OCTOCAT)
    for end in REFUSED_ENDS:  # such a request uses up no budget
        await jobs.submit(new_job(f"refused: {end}"), approval_needed=False, refused=end)
    assert await jobs.requests(7, LAB, TARGET, HUBOT.id, NOW - HOUR) == JobRequests(2, 1)


async def test_the_history_of_a_target_gives_the_durations_of_its_tests(jobs: JobStore, clock: list[float]) -> None:
    await submit(jobs)
    await claim(jobs)
    clock[0] += 90
    await jobs.complete(LAB, "job", "operators")
    assert await jobs.durations(LAB, TARGET) == [90.0]
    served = await jobs.served(LAB)
    assert (served.repositories, served.people) == ({7: NOW}, {(7, HUBOT.id): NOW})


async def test_jobs_that_ended_long_ago_are_removed(jobs: JobStore, clock: list[float]) -> None:
    ended = await submit(jobs, "ended")
    await jobs.cancel(ended, JobEnd.BY_PERSON, also_running=False)
    clock[0] += STORED_SECONDS + 1
    await submit(jobs, "open")
    assert await jobs.remove_old() == 1
    with pytest.raises(UnknownJob):
        await jobs.find(LAB, "ended")
    assert await jobs.find(LAB, "open")


def test_the_id_of_a_job_is_derived_from_its_request() -> None:
    assert job_id_of("intent", ["a", "b"]) == job_id_of("intent", ["a", "b"])
    assert len({job_id_of("intent", [*names]) for names in ("ab", "a", "b", ["ab"])}) == 4


async def test_no_statement_scans_the_table(jobs: JobStore) -> None:
    """On SQLite; the same indices serve PostgreSQL."""
    connector = jobs._connector
    if not hasattr(connector, "path"):
        pytest.skip("on empty tables only SQLite shows which index it uses")
    values = {
        "id": "job",
        "sha": SHA,
        "repository_id": 7,
        "number": 1,
        "lab": LAB,
        "target": TARGET,
        "person": 1,
        "targets": [TARGET],
        "queues": [f"octocat/compiler {TARGET}"],
        "name": f"octocat/compiler {LAB} {TARGET}",
        "since": 1.0,
        "now": 1.0,
        "before": 1.0,
        "after": 1.0,
        "labs": [LAB],
        "most": 5,
        "no_answer": "no answer",
        "no_device": "no device",
        "pull_request": 1,
        "purpose": "search:1",
    }
    for statement in (
        BY_ID,
        OF_PULL,
        JOBS_BEFORE,
        OF_LAB,
        OPEN_TARGETS,
        OPEN_OF_TARGET,
        QUEUES,
        NEXT_OF_QUEUES,
        QUEUED_TARGETS,
        NEEDS_SWEEP,
        TESTED_PULL,
        QUEUED_LATELY,
        OVERDUE,
        UNSHOWN,
        SERVED,
        REQUESTS,
        DURATIONS,
        SAME_JOB,
        NEXT_IDLE,
        IS_WANTED,
        REMOVE_OLD,
        BY_STATE,
        HANDED_OUT,
        WITHOUT_ANSWER,
    ):
        parameters = {name: value for name, value in values.items() if f"%({name})s" in statement}
        rows = await connector.execute_query_all_async(f"EXPLAIN QUERY PLAN {statement}", **parameters)
        steps = [str(row["detail"]) for row in rows]
        partial_indices = ("nightjar_device_jobs_unshown", "nightjar_device_jobs_open")
        short = ("open_target", "queued_target", "queue", "person", "head", "ordered", "same", "json_each", "CONSTANT")
        scans = [
            step
            for step in steps
            if step.startswith("SCAN")
            and step.split()[1] not in short
            and not any(index in step for index in partial_indices)
        ]
        assert scans == [], (statement, steps)
        # Indices that begin with the lab have all jobs that it ever got.
        assert statement != QUEUED_LATELY or "nightjar_device_jobs_expire" in steps[0], steps


async def test_an_id_that_clashes_with_an_old_job_is_not_created_again(jobs: JobStore) -> None:
    first = await submit(jobs)
    assert (await jobs.submit(replace(first, sha=OTHER_SHA), approval_needed=False))[0].id == first.id
