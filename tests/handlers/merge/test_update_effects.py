"""Updating a pull request's branch: what GitHub's failures and refusals become."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from gidgethub import BadRequest

from bot.core.errors import UserError
from bot.github.errors import Unavailable
from bot.plan.failure_text import NEEDS_WORKFLOWS
from handlers.merge.update_effects import UpdateBranch
from sandbox import PullRequest
from sandbox.model.apps import DEFAULT_PERMISSIONS
from tests.handlers.driver import World, a_world

PULL = "/repos/{owner}/{repo}/pulls/{pull_number}"
UPDATE = f"{PULL}/update-branch"
WORKFLOW = {".github/workflows/ci.yml": "on: push"}


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path, features={"merge": True}) as world:
        yield world


def behind(world: World, files: dict[str, str]) -> PullRequest:
    """Open a pull request, and push to its base after that."""
    pull = world.open()
    world.repository.push("main", files, by="octocat")
    return pull


async def updated(world: World, pull: PullRequest) -> str:
    return (await world.apply_alone(UpdateBranch(pull.number, pull.head_sha, "main"))).text


async def test_a_failure_of_github_is_tried_again_and_nothing_more_is_asked(world: World) -> None:
    """The handler asked once more, and raised the error as its own cause."""
    pull = behind(world, {"README.md": "# New"})
    world.github.faults.add("PUT", UPDATE, status=502, times=None)
    with pytest.raises(Unavailable) as caught:
        await updated(world, pull)
    assert caught.value.__cause__ is not caught.value
    assert world.github.requests.count("GET", PULL) == 1


async def test_a_refusal_without_a_meaning_of_its_own_comes_out_as_it_is(world: World) -> None:
    pull = behind(world, {"README.md": "# New"})
    world.github.faults.add("PUT", UPDATE, status=403, message="Resource not accessible by integration")
    with pytest.raises(BadRequest) as caught:
        await updated(world, pull)
    assert caught.value.__cause__ is not caught.value


async def test_an_update_that_brings_workflow_files_names_the_permission_that_it_needs(world: World) -> None:
    """The base changed them: GitHub says no more than that the App may not."""
    with pytest.raises(UserError) as caught:
        await updated(world, behind(world, WORKFLOW))
    assert str(caught.value) == NEEDS_WORKFLOWS


async def test_workflow_files_of_the_pull_request_alone_are_in_the_way_of_no_update(world: World) -> None:
    pull = world.open(files=WORKFLOW)
    world.repository.push("main", {"README.md": "# New"}, by="octocat")
    assert (await updated(world, pull)).startswith("asked GitHub to merge main into ")


async def test_with_that_permission_workflow_files_come_with_the_update(tmp_path: Path) -> None:
    permissions = {**DEFAULT_PERMISSIONS, "workflows": "write"}
    async with a_world(tmp_path, features={"merge": True}, permissions=permissions) as world:
        assert (await updated(world, behind(world, WORKFLOW))).startswith("asked GitHub to merge main into ")
