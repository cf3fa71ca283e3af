"""Updating a pull request's branch: how GitHub's failures and refusals are reported."""

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
    """Open a pull request, then push to its base."""
    pull = world.open()
    world.repository.push("main", files, by="octocat")
    return pull


async def updated(world: World, pull: PullRequest) -> str:
    return (await world.apply_alone(UpdateBranch(pull.number, pull.head_sha, "main"))).text


async def test_a_failure_of_github_is_tried_again_without_another_request(world: World) -> None:
    """The handler used to send another request, and raised the error as its own cause."""
    pull = behind(world, {"README.md": "# New"})
    world.github.faults.add("PUT", UPDATE, status=502, times=None)
    with pytest.raises(Unavailable) as caught:
        await updated(world, pull)
    assert caught.value.__cause__ is not caught.value
    assert world.github.requests.count("GET", PULL) == 1


async def test_an_unknown_refusal_is_reported_unchanged(world: World) -> None:
    pull = behind(world, {"README.md": "# New"})
    world.github.faults.add("PUT", UPDATE, status=403, message="Resource not accessible by integration")
    with pytest.raises(BadRequest) as caught:
        await updated(world, pull)
    assert caught.value.__cause__ is not caught.value


async def test_an_update_that_brings_workflow_files_names_the_required_permission(world: World) -> None:
    """The base changed them: GitHub only says that the App may not."""
    with pytest.raises(UserError) as caught:
        await updated(world, behind(world, WORKFLOW))
    assert str(caught.value) == NEEDS_WORKFLOWS


async def test_workflow_files_changed_by_the_pull_request_alone_do_not_prevent_an_update(world: World) -> None:
    pull = world.open(files=WORKFLOW)
    world.repository.push("main", {"README.md": "# New"}, by="octocat")
    assert (await updated(world, pull)).startswith("asked GitHub to merge main into ")


async def test_with_that_permission_an_update_may_bring_workflow_files(tmp_path: Path) -> None:
    permissions = {**DEFAULT_PERMISSIONS, "workflows": "write"}
    async with a_world(tmp_path, features={"merge": True}, permissions=permissions) as world:
        assert (await updated(world, behind(world, WORKFLOW))).startswith("asked GitHub to merge main into ")
