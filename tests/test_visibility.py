"""Whether a repository is public: asked of GitHub, kept, and private wherever that is not known."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.config import parse_config
from bot.github.client import GitHub
from bot.visibility import FRESH_SECONDS, LONGEST_SECONDS, PAUSE, Visibility
from tests.handlers.driver import FULL_NAME, World, a_world
from tests.waiting import until

REPO = "/repos/{owner}/{repo}"


@dataclass
class Asked:
    """The subject, before a GitHub of its own, by a clock of its own."""

    world: World
    clock: list[float]
    visibility: Visibility

    def requests(self) -> int:
        return self.world.github.requests.count("GET", REPO)

    async def asked(self, count: int) -> None:
        await until(lambda: self.requests() == count)


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[Asked]:
    async with a_world(tmp_path) as world:
        yield Asked(world, clock := [0.0], subject(world, clock))


def subject(world: World, clock: list[float], text: str = "repositories:\n  octocat/compiler:\n") -> Visibility:
    app = world.pipeline.app

    async def github_for(repository: str) -> GitHub:
        return await app.reader(repository)

    return Visibility(parse_config(text.encode(), "app.yaml"), github_for, lambda: clock[0])


@pytest.mark.parametrize("private", [False, True])
async def test_github_is_asked_once_for_a_while(here: Asked, private: bool) -> None:
    here.world.repository.private = private
    for name in (FULL_NAME, "OctoCat/Compiler", FULL_NAME):
        assert await here.visibility.is_public(name) is not private
    here.clock[0] = FRESH_SECONDS - 0.5
    assert await here.visibility.is_public(FULL_NAME) is not private
    assert here.requests() == 1


async def test_later_it_is_asked_again_while_the_old_answer_is_given(here: Asked) -> None:
    assert await here.visibility.is_public(FULL_NAME)
    here.world.repository.private = True
    here.clock[0] = FRESH_SECONDS
    assert await here.visibility.is_public(FULL_NAME)
    await here.asked(2)

    async def is_private() -> bool:
        return not await here.visibility.is_public(FULL_NAME)

    await until(is_private)
    assert here.requests() == 2


async def test_one_that_is_not_ours_is_not_public_and_nobody_is_asked(here: Asked) -> None:
    assert not await here.visibility.is_public("octocat/elsewhere")
    assert here.requests() == 0


@pytest.mark.parametrize("private", [False, True])
async def test_what_app_yaml_says_needs_no_question(here: Asked, private: bool) -> None:
    text = f"repositories:\n  octocat/compiler:\n    api: {{private: {str(private).lower()}}}\n"
    here.world.repository.private = not private
    assert await subject(here.world, here.clock, text).is_public(FULL_NAME) is not private
    assert here.requests() == 0


async def test_while_github_is_away_it_is_private_until_it_was_asked(here: Asked) -> None:
    here.world.github.faults.add("GET", REPO, status=404, times=1)
    assert not await here.visibility.is_public(FULL_NAME)
    here.clock[0] = PAUSE - 0.5
    assert not await here.visibility.is_public(FULL_NAME)
    assert here.requests() == 1
    here.clock[0] = PAUSE
    assert await here.visibility.is_public(FULL_NAME)


async def test_an_old_answer_is_believed_for_an_hour_at_most(here: Asked) -> None:
    assert await here.visibility.is_public(FULL_NAME)
    here.world.github.faults.add("GET", REPO, status=404, times=None)
    here.clock[0] = LONGEST_SECONDS - 0.5
    assert await here.visibility.is_public(FULL_NAME)
    await here.asked(2)
    here.clock[0] = LONGEST_SECONDS
    assert not await here.visibility.is_public(FULL_NAME)
