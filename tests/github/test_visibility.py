"""Whether a repository is public: read from GitHub, cached, and private while that is unknown."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from bot.app.load import parse_config
from bot.core.events import Delivery
from bot.core.payload import Payload
from bot.github.client import GitHub
from bot.github.repositories.visibility import FRESH_SECONDS, PAUSE, Visibility
from tests.handlers.driver import FULL_NAME, World, a_world
from tests.waiting import until

REPO = "/repos/{owner}/{repo}"


@dataclass
class VisibilityCase:
    """The subject, with its own GitHub and its own clock."""

    world: World
    clock: list[float]
    visibility: Visibility

    def requests(self) -> int:
        return self.world.github.requests.count("GET", REPO)

    async def note_delivery(self, event: str, action: str, **fields: Any) -> None:
        """Let the bot note a delivery whose `repository` has these fields besides its name and ID."""
        repository = {"id": self.world.repository.id, "full_name": FULL_NAME, **fields}
        body = {"action": action, "repository": repository, "repositories_added": [repository]}
        await self.world.pipeline.note(Delivery(f"{event}-{action}", event, Payload(body), 0.0))


@pytest.fixture
async def case(tmp_path: Path) -> AsyncIterator[VisibilityCase]:
    async with a_world(tmp_path) as world:
        yield VisibilityCase(world, clock := [0.0], subject(world, clock))


def subject(world: World, clock: list[float], text: str = "repositories:\n  octocat/compiler:\n") -> Visibility:
    app = world.pipeline.app

    async def github_for(repository: str) -> GitHub:
        return await app.reader(repository)

    return Visibility(parse_config(text.encode(), "app.yaml"), github_for, world.records, lambda: clock[0])


async def test_another_repository_that_got_the_name_makes_nothing_public(case: VisibilityCase) -> None:
    """The cached value belongs to a private repository, which was renamed."""
    world = case.world
    world.repository.private = True
    world.open()
    await world.happen()
    world.repository.rename("octocat", "compiler-next")
    namesake = world.github.create_repository(FULL_NAME)
    next(iter(world.github.apps.values())).install(namesake)
    assert not await case.visibility.is_public(FULL_NAME)


@pytest.mark.parametrize("private", [False, True])
async def test_github_is_asked_once_for_a_while(case: VisibilityCase, private: bool) -> None:
    case.world.repository.private = private
    for name in (FULL_NAME, "OctoCat/Compiler", FULL_NAME):
        assert await case.visibility.is_public(name) is not private
    case.clock[0] = FRESH_SECONDS - 0.5
    assert await case.visibility.is_public(FULL_NAME) is not private
    assert case.requests() == 1


async def test_an_expired_answer_does_not_let_anybody_read_what_is_private_now(case: VisibilityCase) -> None:
    assert await case.visibility.is_public(FULL_NAME)
    case.world.repository.private = True
    case.clock[0] = FRESH_SECONDS
    assert not await case.visibility.is_public(FULL_NAME)
    assert case.requests() == 2


async def test_a_private_repository_is_asked_about_again_in_the_background(case: VisibilityCase) -> None:
    """Nobody waits, so response times do not reveal that a private repository has this name."""
    case.world.repository.private = True
    assert not await case.visibility.is_public(FULL_NAME)
    case.world.repository.private = False
    case.clock[0] = FRESH_SECONDS
    assert not await case.visibility.is_public(FULL_NAME)

    async def is_public() -> bool:
        return await case.visibility.is_public(FULL_NAME)

    await until(is_public)
    assert case.requests() == 2


async def test_a_repository_that_is_not_ours_is_not_public_and_costs_no_request_of_its_own(
    case: VisibilityCase,
) -> None:
    for _ in range(3):
        assert not await case.visibility.is_public("octocat/elsewhere")
    assert case.requests() == 1, "that about our repository"


NOT_PUBLIC = ("octocat/compiler", "octocat/elsewhere", "octocat/closed")
CLOSED = "repositories:\n  octocat/compiler:\n  octocat/closed:\n    api: {private: true}\n"


@pytest.mark.parametrize("has_failed", [False, True])
@pytest.mark.parametrize("name", NOT_PUBLIC)
async def test_every_name_that_is_not_public_waits_for_the_same_first_answer(
    case: VisibilityCase, name: str, has_failed: bool
) -> None:
    visibility = subject(case.world, case.clock, CLOSED)
    case.world.repository.private = True
    if has_failed:
        case.world.github.faults.add("GET", REPO, status=404, times=1)
        assert not await visibility.is_public(FULL_NAME)
        case.clock[0] += PAUSE
    held = case.world.github.faults.pause("GET", REPO, when="before")
    first = asyncio.create_task(visibility.is_public(name))
    await held.reached.wait()
    assert not first.done()
    held.resume()
    assert not await first
    # From now on nobody waits, whatever GitHub does.
    case.world.github.faults.pause("GET", REPO, when="before")
    assert [await visibility.is_public(other_name) for other_name in NOT_PUBLIC] == [False] * 3
    assert case.requests() == 1 + has_failed


async def test_a_public_repository_does_not_wait_for_the_answers_about_others(case: VisibilityCase) -> None:
    slow_repository = case.world.github.create_repository("octocat/slow")
    next(iter(case.world.github.apps.values())).install(slow_repository)
    held = case.world.github.faults.pause("GET", re.compile("/repos/octocat/slow"), when="before")
    text = "repositories:\n  octocat/slow:\n  octocat/compiler:\n"
    assert await subject(case.world, case.clock, text).is_public(FULL_NAME)
    held.resume()


@pytest.mark.parametrize("private", [False, True])
async def test_a_setting_in_app_yaml_needs_no_request(case: VisibilityCase, private: bool) -> None:
    text = f"repositories:\n  octocat/compiler:\n    api: {{private: {str(private).lower()}}}\n"
    case.world.repository.private = not private
    assert await subject(case.world, case.clock, text).is_public(FULL_NAME) is not private
    assert case.requests() == 0


async def test_while_github_is_down_a_repository_is_private_until_it_was_read(case: VisibilityCase) -> None:
    case.world.github.faults.add("GET", REPO, status=404, times=1)
    assert not await case.visibility.is_public(FULL_NAME)
    case.clock[0] = PAUSE - 0.5
    assert not await case.visibility.is_public(FULL_NAME)
    assert case.requests() == 1
    case.clock[0] = PAUSE
    assert await case.visibility.is_public(FULL_NAME)


@pytest.mark.parametrize("status", [404, 403, 500])
async def test_without_a_new_answer_it_is_private_at_once(case: VisibilityCase, status: int) -> None:
    assert await case.visibility.is_public(FULL_NAME)
    case.world.github.faults.add("GET", REPO, status=status, times=None)
    case.clock[0] = FRESH_SECONDS
    assert not await case.visibility.is_public(FULL_NAME)
    case.world.github.faults.clear()
    case.clock[0] += PAUSE - 0.5
    assert not await case.visibility.is_public(FULL_NAME)
    case.clock[0] += 0.5
    await until(lambda: case.visibility.is_public(FULL_NAME))


SAYS_PRIVATE = [
    ("repository", "privatized", {"private": True, "visibility": "private"}),
    ("repository", "edited", {"private": True, "visibility": "internal"}),
    ("push", "", {"private": True}),
    ("issue_comment", "created", {"private": False, "visibility": "internal"}),
    ("installation_repositories", "added", {"private": True}),
]
SAYS_NOTHING = [
    ("repository", "publicized", {"private": False, "visibility": "public"}),
    ("push", "", {"private": False}),
    ("push", "", {}),
]


@pytest.mark.parametrize(("event", "action", "fields"), SAYS_PRIVATE)
async def test_a_repository_that_a_payload_calls_private_is_private_at_once_in_every_process(
    case: VisibilityCase, event: str, action: str, fields: dict[str, Any]
) -> None:
    processes = [case.visibility, subject(case.world, case.clock)]
    assert [await visibility.is_public(FULL_NAME) for visibility in processes] == [True, True]
    await case.note_delivery(event, action, **fields)
    case.world.github.faults.add("GET", REPO, status=500, times=None)
    assert [await visibility.is_public(FULL_NAME) for visibility in processes] == [False, False]


@pytest.mark.parametrize(("event", "action", "fields"), SAYS_NOTHING)
@pytest.mark.parametrize("private", [False, True])
async def test_no_payload_makes_a_repository_public(
    case: VisibilityCase, private: bool, event: str, action: str, fields: dict[str, Any]
) -> None:
    case.world.repository.private = private
    assert await case.visibility.is_public(FULL_NAME) is not private
    await case.note_delivery(event, action, **fields)
    assert await case.visibility.is_public(FULL_NAME) is not private
    assert case.requests() == 1


async def test_githubs_answer_outweighs_an_old_payload_until_the_next(case: VisibilityCase) -> None:
    for count in (1, 2):
        await case.note_delivery("push", "", private=True)
        assert await case.visibility.is_public(FULL_NAME)
        assert await case.visibility.is_public(FULL_NAME)
        assert case.requests() == count


async def test_an_answer_from_before_the_change_is_not_believed(case: VisibilityCase) -> None:
    await case.note_delivery("push", "", private=True)
    held = case.world.github.faults.pause("GET", REPO, when="after")
    first = asyncio.create_task(case.visibility.is_public(FULL_NAME))
    await held.reached.wait()
    case.world.repository.private = True
    await case.note_delivery("repository", "privatized", private=True)
    held.resume()
    assert not await first
    assert not await case.visibility.is_public(FULL_NAME)
