"""Whether workflow files change, even if GitHub lists only the first of many changed files."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.github.commits.workflow_files import (
    MOST_COMPARED_FILES,
    MOST_PULL_FILES,
    move_changes_workflows,
    pull_changes_workflows,
)
from tests.handlers.driver import FULL_NAME, World, a_world

WORKFLOW = ".github/workflows/ci.yml"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        world.repository.push("main", {WORKFLOW: "on: push", ".github/labels.yml": "a"}, by="octocat")
        yield world


def many(count: int) -> dict[str, str]:
    """Return files whose names GitHub lists before those of `.github`."""
    return {f"+{number}.txt": "text" for number in range(count)}


async def changes(world: World, files: dict[str, str]) -> bool:
    old_sha = world.repository.branch("main")
    new_sha = world.repository.push("main", files, by="octocat").sha
    return await move_changes_workflows(await world.pipeline.app.reader(FULL_NAME), FULL_NAME, old_sha, new_sha)


@pytest.mark.parametrize("count", [1, MOST_COMPARED_FILES - 1, MOST_COMPARED_FILES, MOST_COMPARED_FILES + 1])
async def test_a_changed_workflow_is_found_after_any_number_of_other_files(world: World, count: int) -> None:
    assert await changes(world, {**many(count), WORKFLOW: "on: pull_request"})


@pytest.mark.parametrize("count", [1, MOST_COMPARED_FILES, MOST_COMPARED_FILES + 1])
async def test_many_files_without_a_workflow_are_recognized(world: World, count: int) -> None:
    assert not await changes(world, {**many(count), ".github/labels.yml": "b"})


async def test_workflows_that_come_with_many_files_are_found_even_without_a_folder_before(tmp_path: Path) -> None:
    async with a_world(tmp_path) as world:
        assert not await changes(world, many(MOST_COMPARED_FILES))
        assert await changes(world, {**dict.fromkeys(many(MOST_COMPARED_FILES), "new"), WORKFLOW: "on: push"})


@pytest.mark.exhaustive("3001-.github/workflows/ci.yml")
@pytest.mark.parametrize(
    ("count", "changed"),
    [(MOST_PULL_FILES, WORKFLOW), (MOST_PULL_FILES + 1, WORKFLOW), (MOST_PULL_FILES + 1, "src/last.cc")],
)
async def test_a_pull_request_with_more_files_than_github_lists_is_searched_completely(
    world: World, count: int, changed: str
) -> None:
    files = {**many(count - 1), changed: "on: pull_request"}
    pull = world.repository.open_pull_request("hubot", "Many files", files=files)
    github = await world.pipeline.app.reader(FULL_NAME)
    assert await pull_changes_workflows(github, FULL_NAME, pull.number) is (changed == WORKFLOW)
