"""Jobs of the bot, and jobs for a few tests, in both databases."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from nightjar_formats.model import TargetKey

from bot.engine.database import Database
from bot.results.few_tests import FailureKind, FewTestsOutcome, TestAttempts
from handlers.device_tests import transitions
from handlers.device_tests.commit_jobs import searches_left
from handlers.device_tests.model import (
    LEASE_SECONDS,
    QUEUE_SECONDS,
    DeviceJobState,
    JobEnd,
    ShownStep,
)
from handlers.device_tests.queue import TargetLimits
from handlers.device_tests.store import JobStore
from handlers.device_tests.transitions import LeaseLost
from tests.handlers.device_tests.cases import HUBOT, NOW, few_tests_job, leased, limits, new_job
from tests.postgres import PostgresServer  # noqa: F401  (its fixtures)
from tests.settings import repository_config

LAB, TARGET = "example-lab", "hexagon-v73"


@pytest.fixture
async def database(url_with_tables: str) -> AsyncIterator[Database]:
    opened = Database(url_with_tables)
    await opened.open()
    yield opened
    await opened.close()


PASSED = FewTestsOutcome({"a": TestAttempts(2, 1, 0, (FailureKind(1, "lost", "text"),))}, {"a": TestAttempts(3)}, 60.0)


async def test_a_job_of_the_bot_runs_when_no_person_waits_and_gives_way(database: Database) -> None:
    moment = NOW
    store = JobStore(database.connector, lambda: moment)
    first, second = few_tests_job("search:1"), few_tests_job("search:2", requested_at=NOW + 1)
    for job in (second, first):
        assert (await store.submit(job, approval_needed=False))[0].state is DeviceJobState.IDLE
    assert await store.submit(replace(first, sha="c" * 40), approval_needed=False) == (
        await store.find(LAB, first.id),
        False,
    ), "one key is one job"
    person = await store.submit(new_job("person"), approval_needed=False)
    assert await store.tests_before(person[0]) == 0
    claimed = await store.claim(LAB, [TARGET], limits(2), is_able=True)
    assert claimed is not None
    assert claimed.job.id == "person", "a person's job comes first"
    assert await store.claim(LAB, [TARGET], limits(2)) is None, "an older agent gets no job without a pull request"
    idle = await store.claim(LAB, [TARGET], limits(2), is_able=True)
    assert idle is not None
    assert idle.job.purpose == "search:1", "the oldest"
    assert await store.claim(LAB, [TARGET], limits(2), is_able=True) is None, "no device is free"
    assert (await store.heartbeat(LAB, idle.job.id, idle.lease)).state is DeviceJobState.LEASED

    # A person asks, and no device is free: the next heartbeat ends the run.
    await store.submit(new_job("other", pull_request=43), approval_needed=False)
    with pytest.raises(LeaseLost):
        await store.heartbeat(LAB, idle.job.id, idle.lease)
    with pytest.raises(LeaseLost):
        await store.heartbeat(LAB, idle.job.id, idle.lease)
    passed_over = await store.find(LAB, idle.job.id)
    assert (passed_over.state, passed_over.slot) == (DeviceJobState.IDLE, -1)
    third = await store.claim(LAB, [TARGET], limits(2), is_able=True)
    assert third is not None
    assert third.job.id == "other"
    counted = await store.requests(7, LAB, TARGET, HUBOT.id, NOW)
    assert (counted.all, counted.by_person) == (2, 2), "the bot's jobs use no budget of people"
    assert (await store.requests(7, LAB, TARGET, 0, NOW)).by_person == 2

    # It waits for a day, and then it ends, as other jobs do.
    moment += LEASE_SECONDS + QUEUE_SECONDS
    while await store.expire():
        pass
    expired = await store.find(LAB, second.id)
    assert (expired.state, expired.end, expired.to_show) == (DeviceJobState.ENDED, JobEnd.NO_DEVICE, ShownStep.ENDED)
    assert expired in await store.unshown(), "its end is announced, though it has no check run"


async def test_a_persons_job_that_nobody_could_take_before_displaces_no_job_of_the_bot(database: Database) -> None:
    moment = NOW
    store = JobStore(database.connector, lambda: moment)
    await store.submit(new_job("person", repository="octocat/paused", repository_id=8), approval_needed=False)
    await store.submit(few_tests_job("search:1"), approval_needed=False)
    moment += 1
    taken = limits(1)

    def limits_of(target: TargetKey) -> TargetLimits | None:
        return None if target.repository == "octocat/paused" else taken(target)

    idle = await store.claim(LAB, [TARGET], limits_of, is_able=True)
    assert idle is not None
    moment += 1
    assert (await store.heartbeat(LAB, idle.job.id, idle.lease)).state is DeviceJobState.LEASED
    await store.submit(new_job("other", pull_request=43, requested_at=moment), approval_needed=False)
    with pytest.raises(LeaseLost):
        await store.heartbeat(LAB, idle.job.id, idle.lease)


async def test_the_outcome_of_a_few_tests_is_stored_with_their_job(database: Database) -> None:
    store = JobStore(database.connector, lambda: NOW)
    await store.submit(new_job("suite"), approval_needed=False)
    job = new_job("tests-1", purpose="reproduce:a", suites=("operators", "models"))
    await store.submit(job, approval_needed=False)
    assert not (await store.submit(replace(job, id="tests-2"), approval_needed=False))[1], "one open job for a purpose"
    assert await store.submit(replace(job, id="tests-3", purpose="reproduce:b"), approval_needed=False)
    while await store.claim(LAB, [TARGET], limits(9), is_able=True):
        pass
    half = await store.complete_few_tests(LAB, "tests-1", "operators", PASSED)
    assert half.state is DeviceJobState.LEASED
    assert await store.complete_few_tests(LAB, "tests-1", "operators", PASSED) == half, "each suite counts once"
    done = await store.complete_few_tests(LAB, "tests-1", "models", FewTestsOutcome({"b": TestAttempts(0, 2)}))
    assert (done.state, done.to_show, done.shown) == (DeviceJobState.DONE, ShownStep.ENDED, ShownStep.NOTHING)
    assert FewTestsOutcome.load((await store.find(LAB, "tests-1")).outcome) == replace(
        PASSED, head={**PASSED.head, "b": TestAttempts(0, 2)}
    )
    assert await store.durations(LAB, TARGET) == [], "how long a suite takes is another question"


async def test_the_jobs_of_the_bot_have_a_budget_and_a_lab_turns_them_off(database: Database) -> None:
    store, about = JobStore(database.connector, lambda: NOW), TargetKey("octocat/compiler", LAB, TARGET)

    async def left(*, tier: int = 2, **lab_keys: object) -> int | None:
        lab = {"targets": {TARGET: {"tier": tier, "searches": {"budget": "2/day"}}}, **lab_keys}
        return await searches_left(store, repository_config(results={"labs": {LAB: lab}}), 7, about, NOW)

    await store.submit(new_job("person"), approval_needed=False)
    assert await left() == 2, "people use a budget of their own"
    await store.submit(few_tests_job("search:1"), approval_needed=False)
    assert await left() == 1
    refused, _ = await store.submit(few_tests_job("search:2"), approval_needed=False, refused=JobEnd.OVER_BUDGET)
    assert (refused.state, refused.to_show) == (DeviceJobState.ENDED, ShownStep.ENDED), "its end is announced"
    assert await left() == 1, "a job that was refused uses no budget"
    await store.submit(few_tests_job("search:3"), approval_needed=False)
    assert await left() == 0
    assert await left(searches=False) is None
    assert await left(tier=3) is None, "a target that accepts no requests has no agent"


def test_late_results_of_a_few_tests_are_announced_again() -> None:
    ended = transitions.show(transitions.cancel(leased(purpose="search:1"), JobEnd.PUSHED, NOW), ShownStep.ENDED)
    assert ended.shown is ended.to_show
    late = transitions.complete_few_tests(ended, "operators", PASSED, NOW + 9)
    assert (late.state, late.ended_at) == (DeviceJobState.DONE, NOW)
    assert late.shown < late.to_show
