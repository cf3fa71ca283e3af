"""Replaying a delivery: failed steps are tried again, and applied ones stay applied."""

from __future__ import annotations

import pytest

from bot.core.errors import UserError
from bot.engine.jobs.journal import DeliveryRecord, PlanStage
from tests.engine.running import LOCK, opened, outcomes, running, settled
from tests.engine.toy import World, body, writes

EVENT = "issue_comment"


async def test_a_failed_effect_is_tried_again_and_the_others_are_left_alone(url_with_tables: str, world: World) -> None:
    effects = [{"target": "x"}, {"target": "y", "errors": ["user:Not yet."]}, {"target": "z"}]
    async with running(url_with_tables, world) as engine, opened(url_with_tables) as command:
        await engine.accept("g", EVENT, body({"a": {"effects": effects}}), LOCK)
        (failed,) = await settled(engine, "g")
        replayed = await command.replay("g")
    assert outcomes(failed) == {"a x": "applied", "a y": "failed", "a z": "applied"}
    assert outcomes(replayed) == {"a x": "applied", "a y": "applied", "a z": "applied"}
    assert replayed.state == "done"
    assert world.written == ["g a x", "g a z", "g a y"]
    assert world.passes("effect g a x") == 1


async def test_a_conclusion_is_drawn_again_if_the_replay_had_other_results(url_with_tables: str, world: World) -> None:
    script = {"effects": [{"target": "x", "errors": ["user:Not yet."]}], "conclude": {}}
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": script}), LOCK)
        await settled(engine, "g")
        await engine.replay("g")
        (conclusion,) = [plan for plan in (await settled(engine, "g"))[0].plans if plan.stage is PlanStage.CONCLUSION]
    assert world.texts == ["x=stopped: Not yet.", "", "x=applied: written | again"]
    assert [effect.target for effect in conclusion.effects] == ["end", "end"]


async def test_an_obsolete_effect_of_an_old_conclusion_is_not_tried_again(url_with_tables: str, world: World) -> None:
    effects, end = [{"target": "x", "errors": ["user:Not yet."]}], {"errors": ["user:GitHub refused."]}
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": {"effects": effects, "conclude": {"effect": end}}}), LOCK)
        (failed,) = await settled(engine, "g")
        record = await engine.replay("g")
    assert [effect.job.state for plan in failed.plans for effect in plan.effects] == ["failed", "failed"]
    assert world.texts == ["", "x=applied: written | again"]
    assert record.state == "done"


async def test_a_failed_effect_of_an_unchanged_conclusion_is_tried_again(url_with_tables: str, world: World) -> None:
    script = writes("x", conclude={"effect": {"errors": ["user:GitHub refused."]}})
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": script}), LOCK)
        await settled(engine, "g")
        record = await engine.replay("g")
    assert world.texts == ["", "x=applied: written"]
    assert record.state == "done"


async def test_a_conclusion_knows_the_answer_that_was_given_before_the_plan(url_with_tables: str, world: World) -> None:
    script = {**writes("x"), "errors": ["user:Not yet."], "answer": {}, "conclude": {}}
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": script}), LOCK)
        await settled(engine, "g")
        await engine.replay("g")
    assert world.texts == ["Not yet.", "", "x=applied: written | again"]


async def test_a_failed_plan_is_made_again_and_its_effects_are_applied(url_with_tables: str, world: World) -> None:
    script = {**writes("x"), "errors": ["user:Not yet."], "answer": {}}
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": script}), LOCK)
        await settled(engine, "g")
        record = await engine.replay("g")
    assert world.written == ["g a answer g", "g a x"]
    assert record.state == "done"


async def test_a_failure_is_not_reported_twice_to_the_same_person(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": {"always": "user:Never.", "answer": {}}}), LOCK)
        await settled(engine, "g")
        record = await engine.replay("g")
    assert world.texts == ["Never."]
    assert record.state == "failed"


async def test_a_failed_answer_is_not_tried_again_once_the_plan_succeeds(url_with_tables: str, world: World) -> None:
    script = {**writes("x"), "errors": ["user:Not yet."], "answer": {"always": "user:GitHub refused the answer."}}
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": script}), LOCK)
        (failed,) = await settled(engine, "g")
        record = await engine.replay("g")
    assert [plan.job.state for plan in failed.plans] == ["failed", "done"]
    assert world.written == ["g a x"]
    assert record.state == "done"


async def test_a_replay_has_all_tries_again(sqlite_url: str, world: World) -> None:
    faults = {"effects": [{"target": "x", "errors": ["fault", "fault", "fault", "again:0"]}]}
    async with running(sqlite_url, world) as engine:
        await engine.accept("g", EVENT, body({"a": faults}), LOCK)
        (failed,) = await settled(engine, "g")
        assert failed.state == "failed"
        record = await engine.replay("g")
    assert record.state == "done"
    assert record.plans[0].effects[0].job.attempts == 2


async def test_a_successful_delivery_can_be_replayed_in_full(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": writes("x"), "b": writes("y", conclude={})}), LOCK)
        await settled(engine, "g")
        for replays in (1, 2):
            record = await engine.replay("g")
            assert len(record.replays) == replays
            assert record.settled
    assert world.happenings.count("deliver g") == 3
    assert world.happenings.count("plan g a") == 3
    assert world.written == ["g a x", "g b y", "g b end"]
    assert len(await _all(url_with_tables)) == 1


async def _all(url: str) -> list[DeliveryRecord]:
    async with opened(url) as engine:
        return await engine.journal.recent()


async def test_a_caller_who_waits_gets_the_result(url_with_tables: str, world: World) -> None:
    heard: list[str] = []
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": {"effects": [{"target": "x", "errors": ["user"]}]}}), LOCK)
        await settled(engine, "g")
        record = await engine.replay("g", progress=lambda record: heard.append(record.state))
    assert heard[0] in ("waiting", "working", "done")
    assert heard[-1] == record.state == "done"


async def test_without_a_worker_the_wait_ends_and_the_replay_stays_queued(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": writes("x")}), LOCK)
        await settled(engine, "g")
    async with opened(url_with_tables) as command:
        record = await command.replay("g", patience=0.1)
        assert record.state == "waiting"
        # A second request during a replay waits for the first.
        assert len((await command.replay("g", patience=0.1)).replays) == 1
    async with running(url_with_tables, world) as engine:
        (record,) = await settled(engine, "g")
    assert record.state == "done"


async def test_an_unknown_guid_is_reported(url_with_tables: str, world: World) -> None:
    async with opened(url_with_tables, world) as engine:
        for ask in (engine.replay("nope"), engine.dry_run("nope")):
            with pytest.raises(UserError, match="No delivery nope is stored"):
                await ask


async def test_a_dry_run_shows_the_plans_and_changes_nothing(url_with_tables: str, world: World) -> None:
    handlers = {"a": writes("x", conclude={}), "b": {"always": "user:Ask first."}}
    async with opened(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body(handlers), LOCK)
        records = await engine.journal.recent()
        plans = await engine.dry_run("g")
        assert await engine.journal.recent() == records
    assert world.written == []
    assert (plans["guid"], plans["event"], plans["ignored"]) == ("g", EVENT, "")
    first, second = plans["plans"]
    assert first["effects"] == [{"target": "x", "kind": "Write"}]
    effect = {"target": "end", "kind": "Write", "text": "x=applied: "}
    assert first["conclusion"] == {"why": "as they ended", "effects": [effect]}
    assert second == {"handler": "b", "error": "UserError: Ask first."}
