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
from bot.config import Config
from bot.core.events import Delivery, Payload
from bot.github.client import GitHub
from bot.github.repositories.installed import INSTALLATIONS, REPOSITORIES, InstalledRepositories
from bot.github.repositories.visibility import FRESH_SECONDS, LAST_SECONDS, PAUSE, Visibility
from sandbox.model.apps import App
from tests.handlers.driver import FULL_NAME, World, a_world
from tests.waiting import until

REPO = "/repos/{owner}/{repo}"
MANY = 400


@dataclass
class VisibilityCase:
    """The subject, with its own GitHub and its own clock."""

    world: World
    clock: list[float]
    visibility: Visibility

    def requests(self) -> int:
        """Return how often GitHub was asked about one repository, or for a list of them."""
        requests = self.world.github.requests
        return requests.count("GET", REPO) + requests.count("GET", REPOSITORIES)

    @property
    def app(self) -> App:
        (app,) = self.world.github.apps.values()
        return app

    async def note_delivery(self, event: str, action: str, **fields: Any) -> None:
        """Let the bot note a delivery whose `repository` has these fields besides its name and ID."""
        repository = {"id": self.world.repository.id, "full_name": FULL_NAME, **fields}
        body = {"action": action, "repository": repository, "repositories_added": [repository]}
        await self.world.pipeline.note(Delivery(f"{event}-{action}", event, Payload(body), 0.0))


@pytest.fixture
async def case(tmp_path: Path) -> AsyncIterator[VisibilityCase]:
    async with a_world(tmp_path) as world:
        yield VisibilityCase(world, clock := [0.0], subject(world, clock))


def subject(
    world: World, clock: list[float], config: Config | str = "repositories:\n  octocat/compiler:\n"
) -> Visibility:
    app = world.pipeline.app
    if isinstance(config, str):
        config = parse_config(config.encode(), "app.yaml")

    async def github_for(repository: str) -> GitHub:
        return await app.reader(repository)

    installed = InstalledRepositories(app, lambda: clock[0])
    return Visibility(config, github_for, installed, world.records, lambda: clock[0])


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
        case.world.github.faults.add("GET", REPOSITORIES, status=404, times=1)
        assert not await visibility.is_public(FULL_NAME)
        case.clock[0] += PAUSE
    held = case.world.github.faults.pause("GET", REPOSITORIES, when="before")
    first = asyncio.create_task(visibility.is_public(name))
    await held.reached.wait()
    assert not first.done()
    held.resume()
    assert not await first
    # From now on nobody waits, whatever GitHub does.
    case.world.github.faults.pause("GET", re.compile("/(repos|installation)/.*"), when="before")
    assert [await visibility.is_public(other_name) for other_name in NOT_PUBLIC] == [False] * 3
    assert case.requests() == 1 + has_failed


async def test_a_public_repository_does_not_wait_for_the_answers_about_others(case: VisibilityCase) -> None:
    slow = case.app.install(case.world.github.create_repository("hubot/slow"))
    token = re.compile(f"/app/installations/{slow.id}/access_tokens")
    held = case.world.github.faults.pause("POST", token, when="before")
    text = "repositories:\n  hubot/slow:\n  octocat/compiler:\n"
    assert await subject(case.world, case.clock, text).is_public(FULL_NAME)
    held.resume()


@pytest.mark.parametrize("private", [False, True])
async def test_a_setting_in_app_yaml_needs_no_request(case: VisibilityCase, private: bool) -> None:
    text = f"repositories:\n  octocat/compiler:\n    api: {{private: {str(private).lower()}}}\n"
    case.world.repository.private = not private
    assert await subject(case.world, case.clock, text).is_public(FULL_NAME) is not private
    assert case.requests() == 0


@pytest.mark.parametrize("route", [INSTALLATIONS, REPOSITORIES])
async def test_while_github_is_down_a_repository_is_private_until_it_was_read(case: VisibilityCase, route: str) -> None:
    case.world.github.faults.add("GET", route, status=404, times=1)
    assert not await case.visibility.is_public(FULL_NAME)
    case.clock[0] = PAUSE - 0.5
    assert not await case.visibility.is_public(FULL_NAME)
    requests = case.world.github.requests
    assert requests.count("GET", route) == 1
    case.clock[0] = PAUSE
    assert await case.visibility.is_public(FULL_NAME)


@pytest.mark.parametrize("status", [404, 403, 500])
async def test_without_a_new_answer_it_is_private_at_once(case: VisibilityCase, status: int) -> None:
    assert await case.visibility.is_public(FULL_NAME)
    case.world.github.faults.add("GET", re.compile("/(repos|installation)/.*"), status=status, times=None)
    case.clock[0] = FRESH_SECONDS
    assert not await case.visibility.is_public(FULL_NAME)
    assert not await case.visibility.is_public(FULL_NAME), "and this time, the list of all repositories was asked for"
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
    assert await case.visibility.is_public(FULL_NAME)
    await case.note_delivery("push", "", private=True)
    held = case.world.github.faults.pause("GET", REPO, when="after")
    first = asyncio.create_task(case.visibility.is_public(FULL_NAME))
    await held.reached.wait()
    case.world.repository.private = True
    await case.note_delivery("repository", "privatized", private=True)
    held.resume()
    assert not await first
    assert not await case.visibility.is_public(FULL_NAME)


# All repositories


async def test_four_hundred_repositories_cost_a_request_for_each_hundred(case: VisibilityCase) -> None:
    names = [FULL_NAME, *(f"octocat/compiler-{number}" for number in range(1, MANY))]
    private = set(names[::7])
    for name in names[1:]:
        case.app.install(case.world.github.create_repository(name, private=name in private))
    case.world.repository.private = True
    visibility = subject(case.world, case.clock, "repositories:\n" + "".join(f"  {name}:\n" for name in names))
    assert (await visibility.public_repositories()).names == [name for name in names if name not in private]
    assert [await visibility.is_public(name) for name in names] == [name not in private for name in names]
    requests = case.world.github.requests
    assert (requests.count("GET", INSTALLATIONS), requests.count("GET", REPOSITORIES), case.requests()) == (1, 4, 4)


async def test_the_last_answers_are_shown_while_github_is_asked_again(case: VisibilityCase) -> None:
    assert (await case.visibility.public_repositories()).names == [FULL_NAME]
    case.clock[0] = LAST_SECONDS - 0.5
    held = case.world.github.faults.pause("GET", REPOSITORIES, when="after")
    assert (await case.visibility.public_repositories()).names == [FULL_NAME]
    await held.reached.wait()
    case.world.repository.private = True
    held.resume()

    async def is_hidden() -> bool:
        return (await case.visibility.public_repositories()).names == []

    case.clock[0] += FRESH_SECONDS
    await until(is_hidden)


async def test_a_list_is_incomplete_until_github_has_answered_about_all_repositories(case: VisibilityCase) -> None:
    """`/` said then that no repository is public."""
    case.world.github.faults.add("GET", REPOSITORIES, status=404)
    assert await case.visibility.public_repositories() == ([], True)
    case.clock[0] += PAUSE

    async def is_complete() -> bool:
        return await case.visibility.public_repositories() == ([FULL_NAME], False)

    await until(is_complete)
    case.world.repository.private = True
    case.clock[0] += LAST_SECONDS
    assert await case.visibility.public_repositories() == ([], False)


async def test_a_repository_that_becomes_known_later_is_asked_about_at_once(case: VisibilityCase) -> None:
    """It was left out for five minutes, and nothing said so."""
    config = parse_config(b"repositories:\n  'octocat/*':\n", "app.yaml")
    visibility = subject(case.world, case.clock, config)
    assert (await visibility.public_repositories()).names == []
    config.configured.know(case.world.repository.id, FULL_NAME)
    assert await visibility.public_repositories() == ([], True)

    async def is_complete() -> bool:
        return await visibility.public_repositories() == ([FULL_NAME], False)

    await until(is_complete)


async def test_answers_that_are_too_old_are_not_shown_until_github_has_repeated_them(case: VisibilityCase) -> None:
    assert (await case.visibility.public_repositories()).names == [FULL_NAME]
    case.world.repository.private = True
    case.clock[0] = LAST_SECONDS
    assert (await case.visibility.public_repositories()).names == []


async def test_a_list_leaves_out_what_a_payload_has_called_private(case: VisibilityCase) -> None:
    assert (await case.visibility.public_repositories()).names == [FULL_NAME]
    await case.note_delivery("push", "", private=True)
    assert (await case.visibility.public_repositories()).names == []
    case.clock[0] = FRESH_SECONDS

    async def is_shown() -> bool:
        return (await case.visibility.public_repositories()).names == [FULL_NAME]

    await until(is_shown)


async def test_a_list_from_before_the_change_is_not_believed(case: VisibilityCase) -> None:
    held = case.world.github.faults.pause("GET", REPOSITORIES, when="after")
    first = asyncio.create_task(case.visibility.public_repositories())
    await held.reached.wait()
    case.world.repository.private = True
    await case.note_delivery("repository", "privatized", private=True)
    held.resume()
    assert (await first).names == []
    assert not await case.visibility.is_public(FULL_NAME)


async def test_when_the_list_cannot_be_renewed_nothing_is_shown_that_has_expired(case: VisibilityCase) -> None:
    assert (await case.visibility.public_repositories()).names == [FULL_NAME]
    case.world.github.faults.add("GET", INSTALLATIONS, status=404, times=None)
    case.clock[0] = FRESH_SECONDS

    async def is_hidden() -> bool:
        return (await case.visibility.public_repositories()).names == []

    await until(is_hidden)
    assert not await case.visibility.is_public(FULL_NAME)


async def test_an_installation_that_cannot_be_listed_hides_only_its_own_repositories(case: VisibilityCase) -> None:
    other = case.app.install(case.world.github.create_repository("hubot/other"))
    text = "repositories:\n  hubot/other:\n  octocat/compiler:\n"
    token = re.compile(f"/app/installations/{other.id}/access_tokens")
    case.world.github.faults.add("POST", token, status=404, times=1)
    visibility = subject(case.world, case.clock, text)
    assert (await visibility.public_repositories()).names == [FULL_NAME]
    case.clock[0] = PAUSE

    async def both_are_shown() -> bool:
        return (await visibility.public_repositories()).names == ["hubot/other", FULL_NAME]

    await until(both_are_shown)


async def test_a_suspended_installation_is_not_asked(case: VisibilityCase) -> None:
    next(iter(case.app.installations.values())).suspend()
    assert (await case.visibility.public_repositories()).names == []
    assert case.requests() == 0


@pytest.mark.parametrize("private", [False, True])
async def test_a_renamed_repository_is_found_by_its_id(case: VisibilityCase, private: bool) -> None:
    """App.yaml has the old name, and the new one is below another owner."""
    world = case.world
    world.open()
    await world.happen()
    world.repository.private = private
    (installation,) = case.app.installations.values()
    installation.remove(world.repository)
    world.repository.transfer("octocat", "hubot")
    case.app.install(world.repository)
    await world.pipeline.repositories.see(world.repository.id, "hubot/compiler", name=FULL_NAME)
    assert (await case.visibility.public_repositories()).names == ([] if private else [FULL_NAME])


@pytest.mark.parametrize("private", [False, True])
async def test_a_list_has_what_app_yaml_calls_public_without_a_request(case: VisibilityCase, private: bool) -> None:
    text = f"repositories:\n  octocat/compiler:\n    api: {{private: {str(private).lower()}}}\n"
    visibility = subject(case.world, case.clock, text)
    assert (await visibility.public_repositories()).names == ([] if private else [FULL_NAME])
    assert case.world.github.requests.count("GET", INSTALLATIONS) == 0
