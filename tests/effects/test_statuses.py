"""A commit status: one write if it must change, none if it is up to date."""

from __future__ import annotations

from collections.abc import AsyncIterator
from itertools import permutations
from pathlib import Path

import pytest

from bot.effects.statuses import SetStatus
from tests.handlers.driver import World, a_world

CONTEXT, PAGE = "ci/slow-tests", "https://ci.example.org/r/octocat/compiler/pulls/1"
WRITE = "POST /repos/{owner}/{repo}/statuses/{sha}"


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        world.github.requests.clear()
        yield world


def status(world: World, page: str = "", description: str = "On: always on main", state: str = "success") -> SetStatus:
    return SetStatus(world.repository.refs["refs/heads/main"], CONTEXT, state, description, page)


def writes(world: World) -> int:
    return world.github.requests.counts().get(WRITE, 0)


async def test_a_push_and_its_pull_request_leave_the_status_with_the_page(world: World) -> None:
    for effects in permutations([status(world), status(world, PAGE)]):
        for effect in effects:
            await world.apply_alone(effect)
    shown_status = world.repository.status(world.repository.refs["refs/heads/main"], CONTEXT)
    assert shown_status is not None
    assert shown_status.target_url == PAGE
    assert writes(world) == 2


async def test_an_equal_status_is_written_once(world: World) -> None:
    assert [(await world.apply_alone(status(world, PAGE))).changed for _ in range(3)] == [True, False, False]
    assert writes(world) == 1


async def test_another_page_text_or_state_is_written(world: World) -> None:
    different = [
        status(world),
        status(world, PAGE),
        status(world, f"{PAGE}2"),
        status(world, description="Off"),
        status(world, description="Off", state="pending"),
    ]
    assert [(await world.apply_alone(effect)).changed for effect in different] == [True] * len(different)
    assert writes(world) == len(different)
