"""The only plan of a delivery is made in the delivery's own job, and as often as in a job of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import LiteralString, TypeVar

import pytest

from bot.engine.jobs.journal import DeliveryFilter, DeliveryRecord, PlanStage
from bot.engine.service import Engine
from bot.engine.sql.transactions import Steps
from tests.engine.running import LOCK, QUICK, running, settled
from tests.engine.test_service import Heard
from tests.engine.toy import World, body, writes
from tests.waiting import until

EVENT = "issue_comment"
COMMENT = {"comment": {"id": 5, "updated_at": "2026-11-20T05:10:00Z"}}
INTENT = f"{EVENT}:created:5:2026-11-20T05:10:00Z"
JOBS: LiteralString = "SELECT task_name, status, queueing_lock, attempts FROM procrastinate_jobs ORDER BY id"
ONCE = "once:"
T = TypeVar("T")


async def jobs(engine: Engine) -> list[tuple[object, ...]]:
    """Return task, status, key and tries of the jobs of deliveries, oldest first."""
    rows = await engine.database.connector.execute_query_all_async(JOBS)
    return [tuple(row.values()) for row in rows if row["task_name"] in ("deliver", "handle")]


async def has_run(engine: Engine, task: str) -> bool:
    """Return whether a job of a task has ended, and none is left."""
    rows = await engine.database.connector.execute_query_all_async(JOBS)
    return {row["status"] for row in rows if row["task_name"] == task} == {"succeeded"}


def plans(record: DeliveryRecord) -> list[tuple[str, str, int]]:
    return [(plan.stage, plan.job.state, plan.job.attempts) for plan in record.plans]


async def test_a_plan_that_succeeds_has_the_job_of_its_delivery(url_with_tables: str, world: World) -> None:
    heard = Heard()
    async with running(url_with_tables, world, observer=heard) as engine:
        await engine.accept("g", EVENT, body({"a": writes("x")}, **COMMENT), LOCK)
        (record,) = await settled(engine, "g")
        assert await jobs(engine) == [("handle", "succeeded", f"{ONCE}plan:a:{INTENT}", 1)]
        (planned,) = record.plans
        assert planned.job.job_id == record.job.job_id
        assert record.jobs[0] == planned.job
        assert (planned.job.outcome, planned.job.text) == ("planned", "as the payload says")
        assert (record.job.outcome, record.job.text, record.repository) == ("routed", "for a", "octocat/compiler")
        assert heard.all[:2] == [("delivery", EVENT, "routed"), ("handler", "a", "planned")]
        again = await engine.replay("g")
    assert plans(again) == [("plan", "done", 1), ("plan", "done", 1)]
    assert world.written == ["g a x"]


async def test_several_handlers_plan_in_jobs_of_their_own(sqlite_url: str, world: World) -> None:
    async with running(sqlite_url, world) as engine:
        await engine.accept("g", EVENT, body({"a": writes("x"), "b": writes("y")}, **COMMENT), LOCK)
        await settled(engine, "g")
        assert [job[:2] for job in await jobs(engine)] == [("deliver", "succeeded"), *[("handle", "succeeded")] * 2]


@pytest.mark.parametrize(
    ("errors", "end"),
    [
        (["again:0"], "done"),
        (["fault", "fault"], "done"),
        (["fault", "fault", "fault"], "failed"),
        (["gives way:0", "again:0"], "done"),
        (["user"], "failed"),
        (["refused"], "refused"),
    ],
)
async def test_a_plan_that_fails_is_made_no_oftener_than_in_a_job_of_its_own(
    url_with_tables: str, world: World, errors: list[str], end: str
) -> None:
    heard = Heard()
    script = {**writes("x"), "errors": errors, "answer": {}}
    tries = len(errors) + (end == "done")
    async with running(url_with_tables, world, observer=heard) as engine:
        await engine.accept("g", EVENT, body({"a": script}, **COMMENT), LOCK)
        (record,) = await settled(engine, "g")
        delivery, plan, *_ = await jobs(engine)
    assert delivery == ("deliver", "succeeded", f"{ONCE}delivery:g", 1)
    assert plan[2:] == (f"{ONCE}plan:a:{INTENT}", tries)
    assert world.passes("plan g a") == tries
    assert world.happenings.count("deliver g") == 1
    assert (record.state, record.job.outcome, record.job.text) == (end, "routed", "for a")
    assert plans(record)[0] == (PlanStage.PLAN, end, tries)
    assert world.written == (["g a x"] if end == "done" else ["g a answer g"])
    last = "planned" if end == "done" else end
    assert [outcome for kind, _, outcome in heard.all if kind == "delivery"] == ["routed"]
    outcomes = [outcome for kind, _, outcome in heard.all if kind == "handler"]
    assert outcomes[:tries] == [*["retrying"] * (tries - 1), last]


async def test_after_a_failed_plan_another_report_of_the_event_plans_nothing(
    url_with_tables: str, world: World
) -> None:
    script = {"a": {**writes("x"), "errors": ["user"], "answer": {}}}
    async with running(url_with_tables, world) as engine:
        for guid in ("app-hook", "repository-hook"):
            await engine.accept(guid, EVENT, body(script, **COMMENT), LOCK)
        first, second = await settled(engine, "app-hook", "repository-hook")
        replayed = await engine.replay("app-hook")
    assert (first.state, second.state, replayed.state) == ("failed", "ignored", "done")
    assert second.job.text == f"another delivery reported this first, and was handled: {INTENT}"
    assert world.passes("plan repository-hook a") == 0
    assert world.written == ["app-hook a answer app-hook", "app-hook a x"]


@pytest.mark.parametrize("errors", [[], ["user"]])
async def test_of_two_plans_of_one_event_that_are_made_at_once_one_is_stored(
    url_with_tables: str, world: World, errors: list[str]
) -> None:
    """They have different locks, as after a transfer of the repository, and each waits until the other has begun."""
    heard = Heard()
    async with running(url_with_tables, world, observer=heard) as engine:
        for guid, other in (("g1", "g2"), ("g2", "g1")):
            script = {**writes("x"), "waits_for": f"plan {other} a", "errors": errors, "answer": {}}
            await engine.accept(guid, EVENT, body({"a": script}, **COMMENT), f"pr:1#{guid}")
        records = await settled(engine, "g1", "g2")
    assert sorted(record.state for record in records) == sorted(["failed" if errors else "done", "ignored"])
    assert len(world.written) == 1
    assert sorted(outcome for kind, _, outcome in heard.all if kind == "delivery") == ["ignored", "routed"]
    planned = [outcome for kind, _, outcome in heard.all if kind == "handler"]
    assert planned[0] == ("failed" if errors else "planned")


async def test_a_plan_that_was_stored_without_an_answer_leaves_no_job_that_nobody_runs(
    url_with_tables: str, world: World
) -> None:
    """The time limit of the job may end while the database commits: then the worker does not know the successor."""
    is_lost = False
    async with running(url_with_tables, world, pace=replace(QUICK, job=1.0)) as engine:
        # No limit ends the wait for a job's end, so the lost answer must not be that of the timer that runs first.
        await until(lambda: has_run(engine, "timer"))
        connector = engine.database.connector
        transact = connector.transact

        async def lose_an_answer(begin: Callable[[], Steps[T]]) -> T:
            nonlocal is_lost
            result = await transact(begin)
            if not is_lost:
                is_lost = True
                await asyncio.Event().wait()
            return result

        connector.transact = lose_an_answer  # type: ignore[method-assign]
        await engine.accept("g", EVENT, body({"a": writes("x", "y")}, **COMMENT), LOCK)
        await settled(engine, "g")
    assert is_lost
    assert world.written == ["g a x", "g a y"]


async def test_a_delivery_is_listed_by_its_subject_while_it_is_planned(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": {**writes("x"), "takes": 1}}, **COMMENT), LOCK)
        await until(lambda: world.passes("plan g a"))
        for chosen in (DeliveryFilter(repository="octocat/compiler", event=f"{EVENT}.created"), DeliveryFilter()):
            (record,) = await engine.journal.matching(5, chosen)
            assert (record.repository, record.action) == ("octocat/compiler", "created")
        assert await engine.journal.matching(5, DeliveryFilter(repository="octocat/other")) == []
        await settled(engine, "g")
