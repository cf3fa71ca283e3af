"""Plans that the pipeline refuses to give to the engine."""

from dataclasses import replace
from pathlib import Path

import pytest

from bot.core.events import Delivery, intent_key
from bot.core.payload import Payload
from bot.plan.handler import ConcludeStage, Context, Handler, Plan, Router
from bot.plan.outcome import EffectOutcomes
from tests.handlers.driver import a_world


async def fail(context: Context) -> Plan:
    raise ValueError("no plan")


async def answer(context: Context, message: str) -> Plan:
    return Plan(why=message, conclusion_basis=1)


async def conclude(context: Context, basis: int, outcomes: EffectOutcomes) -> Plan:
    return Plan()


async def test_an_answer_to_a_failed_plan_has_no_conclude_stage(tmp_path: Path) -> None:
    router = Router()
    wants = frozenset({("issue_comment", "created")})
    router.add(Handler("toy", wants, fail, on_failure=answer, conclude=ConcludeStage(int, conclude)))
    async with a_world(tmp_path) as world:
        world.open().comment("octocat", "hello")
        sent = next(one for one in world.github.webhooks.held if one.event == "issue_comment")
        delivery = Delivery(sent.guid, sent.event, Payload(sent.body), 0.0)
        pipeline = replace(world.pipeline, router=router)
        with pytest.raises(ValueError, match="the plan of toy after a failure has data for a conclude stage"):
            await pipeline.plan_failure(delivery, "toy", intent_key(delivery), "why")
