"""How a commit stands, and who says so: statuses and check runs of everybody, the latest of each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.github.client import GitHub
from bot.github.signals import signals_of
from bot.required import Signal, State
from sandbox import App
from tests.handlers.driver import FULL_NAME, World, a_world


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


async def client(world: World) -> GitHub:
    app = world.pipeline.app
    return app.installation(await app.installation_for(FULL_NAME), dry_run=True)


async def stands(world: World, sha: str) -> dict[str, tuple[State, int]]:
    found = await signals_of(await client(world), FULL_NAME, sha)
    return {signal.name: (signal.state, signal.app) for signal in found}


def foreign_app(world: World, slug: str) -> App:
    app = world.github.create_app(slug, permissions={"checks": "write", "statuses": "write"})
    app.install(world.repository)
    return app


async def test_a_check_run_and_a_status_say_which_app_reported_them(world: World) -> None:
    sha, lint = world.open().head_sha, foreign_app(world, "lint")
    world.repository.add_check_run(lint, sha, "style", conclusion="success")
    world.repository.set_status(lint.bot, sha, "format", "success")
    world.repository.set_status("hubot", sha, "by-hand", "pending")
    assert await stands(world, sha) == {
        "style": (State.GREEN, lint.id),
        "format": (State.GREEN, lint.id),
        "by-hand": (State.PENDING, 0),
    }


async def test_a_commit_that_nobody_has_looked_at_stands_for_nothing(world: World) -> None:
    """A null rollup, as GraphQL calls it, was the end of the predecessor's script."""
    assert await stands(world, world.open().head_sha) == {}


@pytest.mark.parametrize("conclusion", ["success", "neutral", "skipped"])
async def test_what_satisfies_githubs_required_checks_is_green(world: World, conclusion: str) -> None:
    """TVM #11569: neutral counted as a failure."""
    sha = world.open().head_sha
    world.repository.add_check_run(foreign_app(world, "lint"), sha, "style", conclusion=conclusion)
    assert [state for state, _ in (await stands(world, sha)).values()] == [State.GREEN]


async def test_of_a_workflow_that_ran_twice_the_later_run_counts(world: World) -> None:
    """TVM #11569: a job that was run again stood there twice, and its first failure blocked the merge."""
    sha = world.open().head_sha
    world.repository.add_workflow_run(sha, "CI", "failure", {"unit": "failure"})
    world.repository.add_workflow_run(sha, "CI", "success", {"unit": "success"})
    found = await signals_of(await client(world), FULL_NAME, sha)
    assert found == [Signal("unit", State.GREEN)]
