"""Plans that the pipeline refuses to give to the engine, and effects that wait for GitHub's limits."""

import time
from dataclasses import replace
from pathlib import Path

import pytest

from bot.app.processor import RANK, STRANGERS_PATIENCE
from bot.app.texts import RATE_LIMITED
from bot.config import RepositoryConfig
from bot.core.errors import GiveWay
from bot.core.events import Delivery, Payload, Repository, intent_key
from bot.effects.labels import EnsureLabel
from bot.engine.processor import EffectJob
from bot.github.errors import RateLimited
from bot.github.limits.ledger import Allowance
from bot.github.limits.ranks import CURRENT_RANK, Rank
from bot.plan.handler import ConcludeStage, Context, Handler, Plan, Router
from bot.plan.outcome import EffectOutcomes
from bot.timers.timers import TIMER_EVENT, TimerEvent
from tests.handlers.driver import World, a_world


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


def a_label(world: World, number: int, rank: Rank, received_at: float) -> EffectJob:
    """Return an effect that writes once, of a delivery that arrived at a moment."""
    effect = {"kind": "EnsureLabel", "number": number, "label": f"rank-{rank.name}", "on": True, RANK: int(rank)}
    repository = Repository(world.repository.id, world.repository.full_name, None)
    return EffectJob("g", "commands", "i", repository, "label", effect, received_at=received_at)


@pytest.mark.parametrize(("event", "rank"), [(TIMER_EVENT.name, Rank.SWEEP), ("push", Rank.EVENT)])
async def test_the_run_of_a_timer_leaves_half_of_the_limits_to_people(tmp_path: Path, event: str, rank: Rank) -> None:
    """Timers of 1,000 repositories used up the points of a minute, for which commands then waited."""
    ranks = []

    async def plan(context: Context) -> Plan:
        ranks.append(CURRENT_RANK.get())
        return Plan((EnsureLabel(1, "nightly", on=True),))

    router = Router()
    router.add(Handler("toy", frozenset({(event, "nightly")}), plan))
    async with a_world(tmp_path) as world:
        repository = Repository(world.repository.id, world.repository.full_name, None)
        timer = TimerEvent("nightly", "2026-11-20T21:00:00Z", 1_790_000_000)
        delivery = Delivery("g", event, Payload(TIMER_EVENT.body(repository, timer)), 0.0)
        planned = await replace(world.pipeline, router=router).plan(delivery, "toy", "intent")
    assert ranks == [rank]
    assert [Rank(effect.effect.get(RANK, Rank.EVENT)) for effect in planned.effects] == [rank]


async def test_the_answer_to_a_stranger_gives_way_for_an_hour_when_the_limits_are_used_up(tmp_path: Path) -> None:
    few = Allowance(writes_per_minute=2, writes_per_hour=2, write_burst=2)
    async with a_world(tmp_path, allowance=few) as world:
        number, now = world.open().number, time.time()
        await world.pipeline.apply(a_label(world, number, Rank.WRITER, now))
        with pytest.raises(GiveWay) as waiting:
            await world.pipeline.apply(a_label(world, number, Rank.STRANGER, now))
        assert 0 < waiting.value.retry_in <= STRANGERS_PATIENCE
        late = await world.pipeline.apply(a_label(world, number, Rank.STRANGER, now - STRANGERS_PATIENCE - 1))
        assert (late.text, late.changed) == (RATE_LIMITED, False)
        with pytest.raises(RateLimited):
            await world.pipeline.apply(a_label(world, number, Rank.SWEEP, now - STRANGERS_PATIENCE - 1))


async def test_if_a_delivery_cannot_be_routed_the_handlers_that_can_report_it_are_named(tmp_path: Path) -> None:
    def breaks(delivery: Delivery, config: RepositoryConfig) -> bool:
        raise RuntimeError("a fault in one feature")

    def declines(delivery: Delivery, config: RepositoryConfig) -> bool:
        return False

    router = Router()
    wants = frozenset({("issue_comment", "created")})
    router.add(Handler("reports", wants, fail, on_failure=answer))
    router.add(Handler("silent", wants, fail))
    router.add(Handler("broken", wants, fail, on_failure=answer, accepts=breaks))
    router.add(Handler("uninterested", wants, fail, on_failure=answer, accepts=declines))
    router.add(Handler("off", wants, fail, on_failure=answer, feature="merge"))
    router.add(Handler("unmentioned", wants, fail, on_failure=answer, needs_mention=True))
    async with a_world(tmp_path) as world:
        world.open().comment("octocat", "hello")
        sent = next(one for one in world.github.webhooks.held if one.event == "issue_comment")
        delivery = Delivery(sent.guid, sent.event, Payload(sent.body), 0.0)
        pipeline = replace(world.pipeline, router=router)
        with pytest.raises(RuntimeError):
            await pipeline.handlers_for(delivery)
        assert list(pipeline.answering(delivery)) == ["reports"]
