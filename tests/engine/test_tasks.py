"""What happens to a delivery: its handlers, their plans, and their effects, on both databases."""

from __future__ import annotations

import asyncio

import pytest

from bot.engine.jobs.journal import PlanStage
from tests.engine.running import LOCK, opened, outcomes, running, settled, texts, twice
from tests.engine.toy import SORRY, TALLY, Tally, World, body, writes
from tests.waiting import until

EVENT = "issue_comment"


async def test_effects_of_all_handlers_are_applied_and_recorded(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        assert await engine.accept("g", EVENT, body({"a": writes("x", "y"), "b": writes("z")}), LOCK)
        (record,) = await settled(engine, "g")
    assert world.written == ["g a x", "g a y", "g b z"]
    assert record.state == "done"
    assert outcomes(record) == {"a x": "applied", "a y": "applied", "b z": "applied"}


async def test_a_delivery_without_work_ends_with_the_reason(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({}), LOCK)
        (record,) = await settled(engine, "g")
    assert (record.state, record.job.text) == ("ignored", "nobody wants it")


async def test_a_delivery_that_comes_twice_is_handled_once(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        stored = await asyncio.gather(*(engine.accept("g", EVENT, body({"a": writes("x")}), LOCK) for _ in range(10)))
        assert sorted(stored) == [False] * 9 + [True]
        await settled(engine, "g")
        assert not await engine.accept("g", EVENT, body({"a": writes("x")}), LOCK)
    assert world.happenings.count("deliver g") == 1
    assert world.written == ["g a x"]


async def test_two_deliveries_of_one_event_have_one_effect(url_with_tables: str, world: World) -> None:
    comment = {"comment": {"id": 5, "updated_at": "2026-11-20T05:10:00Z"}}
    async with running(url_with_tables, world) as engine:
        for guid in ("app-hook", "repository-hook"):
            await engine.accept(guid, EVENT, body({"a": writes("x")}, **comment), LOCK)
        first, second = await settled(engine, "app-hook", "repository-hook")
    assert world.written == ["app-hook a x"]
    assert first.state == "done"
    assert second.state == "ignored"
    assert (
        second.job.text
        == f"another delivery reported this first, and was handled: {EVENT}:created:5:2026-11-20T05:10:00Z"
    )


async def test_deliveries_of_one_pull_request_run_one_after_another(url_with_tables: str, world: World) -> None:
    guids = [f"g{n}" for n in range(8)]
    async with opened(url_with_tables) as outside:
        for guid in guids:
            await outside.accept(guid, EVENT, body({"a": writes("x", "y"), "b": writes("z")}), LOCK)
    async with running(url_with_tables, world) as engine:
        await settled(engine, *guids)
    expected = [f"{guid} {write}" for guid in guids for write in ("a x", "a y", "b z")]
    assert world.written == expected


async def test_deliveries_of_different_pull_requests_do_not_wait_for_each_other(
    url_with_tables: str, world: World
) -> None:
    """Each waits for an action of the other, so one after another they would never end."""
    async with running(url_with_tables, world) as engine:
        for guid, other_guid in (("g1", "g2"), ("g2", "g1")):
            script = {"effects": [{"target": "x", "waits_for": f"effect {other_guid} a x"}]}
            await engine.accept(guid, EVENT, body({"a": script}), f"pr:1#{guid}")
        await settled(engine, "g1", "g2")
    assert sorted(world.written) == ["g1 a x", "g2 a x"]


async def test_a_failing_handler_stops_no_other_even_while_it_waits(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        handlers = {
            "waits": {**writes("late"), "errors": ["again:3600"]},
            "refuses": {"always": "user"},
            "lacks": {"always": "payload"},
            "works": writes("x", conclude={}),
        }
        await engine.accept("g", EVENT, body(handlers), LOCK)
        await until(lambda: world.written == ["g works x", "g works end"])
        record = await engine.journal.delivery("g")
    assert record is not None
    plans = {plan.handler: plan.job for plan in record.plans}
    assert {name: job.state for name, job in plans.items()} == {
        "waits": "waiting",
        "refuses": "failed",
        "lacks": "failed",
        "works": "done",
    }
    assert plans["waits"].next_try is not None
    assert plans["refuses"].text == "No, and this is why."
    assert plans["lacks"].text == "pull_request.head.sha: is missing where text was expected"


async def test_an_effect_that_waits_does_not_delay_another_handler(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        slow = {"effects": [{"target": "slow", "errors": ["again:3600"]}, {"target": "other"}], "conclude": {}}
        await engine.accept("g", EVENT, body({"a": slow, "b": writes("x", conclude={})}), LOCK)
        await until(lambda: "g b end" in world.written)
    assert world.written == ["g a other", "g b x", "g b end"]


async def test_the_next_delivery_waits_for_the_retries_of_the_previous_one(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        slow = {"effects": [{"target": "x", "errors": ["again:0.3", "again:0.3"]}]}
        await engine.accept("g1", EVENT, body({"a": slow}), LOCK)
        await engine.accept("g2", EVENT, body({"a": writes("x")}), LOCK)
        first, _ = await settled(engine, "g1", "g2")
    assert world.written == ["g1 a x", "g2 a x"]
    assert first.plans[0].effects[0].job.attempts == 3


async def test_a_wait_survives_the_process(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": {"effects": [{"target": "x", "errors": ["again:1.5"]}]}}), LOCK)
        await until(lambda: world.passes("effect g a x") == 1)
    async with running(url_with_tables, world) as engine:
        record = await engine.journal.delivery("g")
        assert record is not None
        waiting = record.plans[0].effects[0].job
        assert (waiting.state, waiting.outcome, waiting.text) == ("waiting", "retrying", "TryAgain: at a given time")
        await settled(engine, "g")
    assert world.written == ["g a x"]


async def test_a_fault_of_ours_is_tried_three_times_then_stored_with_its_text(sqlite_url: str, world: World) -> None:
    async with running(sqlite_url, world) as engine:
        await engine.accept("g", EVENT, body({"a": {"effects": [{"target": "x", "always": "fault"}]}}), LOCK)
        (record,) = await settled(engine, "g")
        assert [r.guid for r in await engine.journal.recent(failed=True)] == ["g"]
    assert world.passes("effect g a x") == 3
    assert record.state == "failed"
    assert texts(record) == {"a x": "RuntimeError: a fault of ours: fault"}


async def test_the_person_who_asked_is_notified_of_a_plan_that_failed(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        await engine.accept(
            "refused", EVENT, body({"a": {"always": "user:Ask somebody with triage.", "answer": {}}}), LOCK
        )
        await engine.accept("broken", EVENT, body({"a": {"always": "payload", "answer": {}}}), LOCK)
        await settled(engine, "refused", "broken")
    assert world.texts == ["Ask somebody with triage.", SORRY.format(guid="broken")]


async def test_a_conclusion_is_drawn_from_the_outcomes_of_all_effects(url_with_tables: str, world: World) -> None:
    effects = [
        {"target": "late", "errors": ["again:0.2"]},
        {"target": "refused", "always": "user:Not you."},
        {"target": "broken", "always": "payload"},
        {"target": "asks"},
    ]
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": {"effects": effects, "conclude": {}}}), LOCK)
        await settled(engine, "g")
    assert world.written == ["g a asks", "g a late", "g a end"]
    assert world.texts[-1].split(" | ") == [
        "late=applied: written",
        "refused=stopped: Not you.",
        f"broken=failed: {SORRY.format(guid='g')}",
        "asks=applied: written",
    ]


async def test_a_refusal_to_a_person_is_an_answer_and_no_failure(url_with_tables: str, world: World) -> None:
    """The person is notified as after a failure, but operators do not find it in their list of failures."""
    effects = [{"target": "merge", "errors": ["refused:Squash merges are not allowed."]}, {"target": "eyes"}]
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": {"effects": effects, "conclude": {}}}), LOCK)
        (record,) = await settled(engine, "g")
        assert await engine.journal.recent(failed=True) == []
        (merge, *_) = record.plans[0].effects
        await engine.replay("g")
    assert (merge.job.state, merge.job.outcome, merge.job.attempts) == ("refused", "refused", 1)
    assert (record.state, record.reason) == ("refused", "Squash merges are not allowed.")
    assert world.texts == ["", "merge=refused: Squash merges are not allowed. | eyes=applied: written"]
    assert world.happenings.count("effect g a merge") == 1, "a replay does not repeat what was refused"


async def test_an_effect_that_gives_way_waits_behind_all_else_under_its_lock(database_url: str, world: World) -> None:
    """Its conclusion waits behind it, and is not tried again and again meanwhile."""
    gives_way = {"target": "x", "errors": ["gives way:0.5", "gives way:0.5"]}
    async with running(database_url, world) as engine:
        script = {"effects": [gives_way, {"target": "y"}], "conclude": {}}
        await engine.accept("g", EVENT, body({"a": script}), LOCK)
        await engine.accept("next", EVENT, body({"a": writes("z", conclude={})}), LOCK)
        first, second = await settled(engine, "g", "next")
    assert world.written == ["g a y", "next a z", "next a end", "g a x", "g a end"]
    assert (first.state, second.state) == ("done", "done")
    conclusion = next(plan for plan in first.plans if plan.stage is PlanStage.CONCLUSION)
    assert conclusion.job.attempts <= 4


async def test_a_handler_that_this_version_lacks_ends_its_job_at_once(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": {"always": "unknown:a"}}), LOCK)
        (record,) = await settled(engine, "g")
    (plan,) = [plan for plan in record.plans if plan.stage is PlanStage.PLAN]
    assert (plan.job.state, plan.job.attempts) == ("failed", 1)
    assert plan.job.text.startswith("UnknownHandler: this version has no handler 'a'; replay the delivery with a")


async def test_a_conclusion_that_fails_is_stored_as_failed_and_replayed(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        script = writes("x", conclude={"errors": ["user:Not yet."]})
        await engine.accept("g", EVENT, body({"a": script}), LOCK)
        (failed,) = await settled(engine, "g")
        replayed = await engine.replay("g")
    assert [(plan.stage, plan.job.state) for plan in failed.plans] == [("plan", "done"), ("conclusion", "failed")]
    assert replayed.state == "done"
    assert world.written == ["g a x", "g a end"]


async def test_a_refused_plan_is_answered(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": {"always": "refused:Not here.", "answer": {}}}), LOCK)
        (record,) = await settled(engine, "g")
        assert await engine.journal.recent(failed=True) == []
    assert record.state == "refused"
    assert world.texts == ["Not here."]


async def test_an_odd_payload_is_passed_through_unchanged(url_with_tables: str, world: World) -> None:
    raw = '{"action": "created", "title": "nul \\u0000, half a pair \\ud83d", "handlers": {"a": {"effects": ' + (
        '[{"target": "x", "text": "\\u0000 and \\ud83d"}]}}, "repository": {"id": 1, "full_name": "octocat/compiler"}}'
    )
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, raw, LOCK)
        (record,) = await settled(engine, "g")
    assert outcomes(record) == {"a x": "applied"}
    assert world.texts == ["\\x00 and \\ud83d"]
    assert record.plans[0].effects[0].effect["text"] == "\x00 and \ud83d"


async def test_a_hundred_simultaneous_deliveries_are_all_done_once(url_with_tables: str, world: World) -> None:
    guids = [f"g{n}" for n in range(100)]
    async with running(url_with_tables, world) as engine:
        await asyncio.gather(
            *(
                engine.accept(guid, EVENT, body({"a": writes("x", "y")}), f"pr:1#{n % 10}")
                for n, guid in enumerate(guids)
            )
        )
        await settled(engine, *guids)
    assert len(world.written) == 200
    assert twice(world.written) == []


FINAL_CAUSES = (
    "user",
    "refused",
    "payload",
    "unknown:a",
    "fault",
    "over-time",
    "lost",
    "away",
    "not-installed",
    "forbidden",
)
"""Everything that ends a job for good: refusals, faults of ours, crashes, outages, and missing access."""


@pytest.mark.parametrize("stage", ["route", "plan", "effect", "conclude"])
async def test_each_final_failure_is_answered_whatever_its_cause(sqlite_url: str, world: World, stage: str) -> None:
    """Who waits for a command gets an answer from each stage, also if a crash or an outage ended it."""

    def script(cause: str) -> str:
        failing = {
            stage_name: {"always": cause} if stage_name == stage else {}
            for stage_name in ("route", "plan", "effect", "conclude")
        }
        effects = [{"target": "x", **failing["effect"]}]
        plan = {"effects": effects, "conclude": failing["conclude"], "answer": {}, **failing["plan"]}
        return body({"a": plan}, route=failing["route"])

    async with running(sqlite_url, world) as engine:
        for cause in FINAL_CAUSES:
            await engine.accept(cause, EVENT, script(cause), f"pr:1#{cause}")
        await settled(engine, *FINAL_CAUSES)
    written = list(zip(world.written, world.texts, strict=True))
    for cause in FINAL_CAUSES:
        [answer] = [text for key, text in written if key.startswith(f"{cause} ") and key != f"{cause} a x"]
        if stage == "effect":
            assert answer.startswith("x=")
            assert not answer.startswith("x=applied")
        elif stage == "conclude":
            assert answer.startswith("I started this, but I can't tell how it ended. ")


async def test_a_failed_conclusion_that_is_replayed_successfully_ends_the_command_as_usual(
    sqlite_url: str, world: World
) -> None:
    plan = {**writes("x"), "conclude": {"errors": ["user:Not now."]}, "answer": {}}
    async with running(sqlite_url, world) as engine:
        await engine.accept("g", EVENT, body({"a": plan}), LOCK)
        await settled(engine, "g")
        await engine.replay("g")
        await settled(engine, "g")
    first, second = world.texts[-2:]
    assert first == "I started this, but I can't tell how it ended. Not now."
    assert second.startswith("x=")
    assert second.endswith(": written | again")


COUNTING = {"effects": [{"target": "x"}, {"target": "n", "counts": True}, {"target": "y"}]}


async def test_an_effect_that_is_stored_with_its_plan_has_no_job_and_is_shown_at_its_place(
    url_with_tables: str, world: World
) -> None:
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": {**COUNTING, "conclude": {}}}), LOCK)
        (record,) = await settled(engine, "g")
        assert await engine.records.get(TALLY.of("n")) == Tally(1)
    assert world.written == ["g a x", "g a y", "g a end"]
    assert world.texts[-1] == "x=applied: written | n=applied: counted | y=applied: written"
    plan, _ = record.plans
    assert [(effect.target, effect.job.outcome, effect.job.text) for effect in plan.effects] == [
        ("x", "applied", "written"),
        ("n", "applied", "counted"),
        ("y", "applied", "written"),
    ]
    assert (plan.effects[1].job.job_id, plan.effects[1].job.state) == (plan.job.job_id, "done")
    assert len(record.jobs) == 5  # the delivery with its plan, two effects, the conclusion and its effect
    assert (record.job.outcome, record.job.text) == ("routed", "for a")


async def test_a_plan_is_made_again_if_a_record_that_it_changes_was_changed_meanwhile(
    url_with_tables: str, world: World
) -> None:
    async with running(url_with_tables, world) as engine:
        for n in range(8):
            await engine.accept(f"g{n}", EVENT, body({"a": COUNTING}), f"pr:1#{n}")
        await settled(engine, *(f"g{n}" for n in range(8)))
        assert await engine.records.get(TALLY.of("n")) == Tally(8)
    assert sorted(world.written) == sorted(f"g{n} a {target}" for n in range(8) for target in "xy")


async def test_a_replay_repeats_no_effect_that_was_stored_with_its_plan(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": {**COUNTING, "conclude": {}}}), LOCK)
        await settled(engine, "g")
        await engine.replay("g")
        assert await engine.records.get(TALLY.of("n")) == Tally(1)
    assert world.written == ["g a x", "g a y", "g a end"]


async def test_a_replay_stores_what_a_failed_plan_did_not(url_with_tables: str, world: World) -> None:
    async with running(url_with_tables, world) as engine:
        await engine.accept("g", EVENT, body({"a": {**COUNTING, "errors": ["user"]}}), LOCK)
        await settled(engine, "g")
        assert await engine.records.get(TALLY.of("n")) is None
        await engine.replay("g")
        assert await engine.records.get(TALLY.of("n")) == Tally(1)
