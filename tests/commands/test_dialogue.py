"""From a comment to a plan: which effects in which order, and which conclusion. Nothing is applied here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from bot.core.errors import TryAgain
from bot.core.events import Delivery, Payload, intent_key
from bot.engine.processor import PlannedEffects
from bot.github.pull_heads import HEAD
from sandbox.webhooks import SentDelivery
from tests.handlers.driver import World, a_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


async def planned(world: World, delivered: SentDelivery) -> PlannedEffects:
    delivery = Delivery(delivered.guid, delivered.event, Payload(delivered.body), delivered.created_at.timestamp())
    return await world.pipeline.plan(delivery, "commands", intent_key(delivery))


async def plan_of(world: World, text: str, login: str = "octocat") -> PlannedEffects:
    """Return the plan for a comment on a pull request with one failed workflow."""
    pull = world.open()
    world.repository.add_workflow_run(pull.head_sha, "CI", "failure")
    await world.happen()
    pull.comment(login, text)
    return await planned(world, world.github.webhooks.held[-1])


def kinds(plan: PlannedEffects) -> list[str]:
    return [effect.kind for effect in plan.effects]


def items(plan: PlannedEffects) -> list[tuple[str, bool]]:
    """Return the concluded commands, and whether they succeed if their effects do."""
    assert plan.conclusion_basis is not None
    return [(item["shown"], item["done"]) for item in plan.conclusion_basis["basis"]["items"]]


@pytest.mark.no_cover
@pytest.mark.parametrize(
    ("text", "effects", "concluded"),
    [
        ("@ci help", ["React", "CountCommands"], [("`@ci help`", True)]),
        ("@ci rerun", ["React", "CountCommands", "RerunWorkflow"], [("`@ci rerun`", True)]),
        (
            "@ci run slow tests",
            ["React", "CountCommands", "StoreRecord", "SetStatus", "RerunWorkflow"],
            [("`@ci run slow tests`", True)],
        ),
        ("@ci rnu", ["React", "CountCommands"], [("`@ci rnu`", False)]),
        (
            "@ci rerun\n@ci rnu\n@ci help",
            ["React", "CountCommands", "RerunWorkflow"],
            [("`@ci rerun`", True), ("`@ci rnu`", False), ("`@ci help`", True)],
        ),
        (
            "@ci rerun failed\n@ci rerun all",
            ["React", "CountCommands", "RerunWorkflow"],
            [("`@ci rerun failed`", True), ("`@ci rerun all`", True)],
        ),
        ("@ci rerun\n@ci rerun", ["React", "CountCommands", "RerunWorkflow"], [("`@ci rerun`", True)]),
    ],
)
async def test_the_eyes_come_first_and_one_conclusion_last(
    world: World, text: str, effects: list[str], concluded: list[tuple[str, bool]]
) -> None:
    plan = await plan_of(world, text)
    assert kinds(plan) == effects
    assert plan.effects[0].effect["content"] == "eyes"
    assert items(plan) == concluded


async def test_the_later_of_two_commands_about_the_same_thing_wins(world: World) -> None:
    plan = await plan_of(world, "@ci run slow tests\n@ci skip slow tests")
    (remembered,) = [effect.effect for effect in plan.effects if effect.kind == "StoreRecord"]
    assert remembered["stored"]["value"]["on"] is False


@pytest.mark.parametrize("text", ["Nice.", "> @ci rerun", "`@ci rerun`", "@ci thanks", ""])
async def test_text_without_a_command_plans_nothing(world: World, text: str) -> None:
    plan = await plan_of(world, text)
    assert (plan.effects, plan.conclusion_basis) == ((), None)


@pytest.mark.parametrize(
    ("text", "concluded"),
    [("@ci rnu", None), ("@ci rerun\n@ci rnu", [("`@ci rerun`", False)]), ("@ci help", [("`@ci help`", False)])],
)
async def test_without_the_right_to_run_commands_typos_plan_nothing_and_commands_only_an_answer(
    world: World, text: str, concluded: list[tuple[str, bool]] | None
) -> None:
    plan = await plan_of(world, text, login="passer-by")
    assert kinds(plan) == ([] if concluded is None else ["React", "CountCommands"])
    assert concluded is None or items(plan) == concluded


async def test_nothing_is_decided_while_the_api_lags_behind_its_webhooks(world: World) -> None:
    """Otherwise a person would read that the head moved from the new commit to the old one."""
    pull = world.open()
    await world.happen()
    key = HEAD.of(world.repository.id, pull.number)
    head = await world.records.get(key)
    assert head is not None
    await world.records.put(key, replace(head, sha="f" * 40, updated_at="2999-01-01T00:00:00Z"))
    pull.comment("octocat", "@ci rerun")
    with pytest.raises(TryAgain, match="does not show the head"):
        await planned(world, world.github.webhooks.held[-1])


async def test_planning_writes_nothing(world: World) -> None:
    world.github.requests.clear()
    await plan_of(world, "@ci rerun\n@ci run slow tests\n@ci rnu")
    writes = [request for request in world.github.requests.writes if "statuses" not in request.route]
    assert writes == []
