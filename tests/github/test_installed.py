"""The App's installations and their repositories: read a hundred at a time, and shared for five minutes."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bot.github.errors import AccessPaused
from bot.github.repositories.installed import (
    FRESH_SECONDS,
    INSTALLATIONS,
    REPOSITORIES,
    InstalledRepositories,
    ListedRepository,
)
from sandbox.model.apps import App
from tests.handlers.driver import FULL_NAME, World, a_world
from tests.waiting import DEADLINE

MANY = 250


@dataclass
class InstalledCase:
    """The subject, with its own GitHub and its own clock."""

    world: World
    clock: list[float]
    installed: InstalledRepositories

    @property
    def app(self) -> App:
        (app,) = self.world.github.apps.values()
        return app

    def requests(self) -> tuple[int, int]:
        """Return how often GitHub was asked for installations, and for their repositories."""
        requests = self.world.github.requests
        return requests.count("GET", INSTALLATIONS), requests.count("GET", REPOSITORIES)


@pytest.fixture
async def case(tmp_path: Path) -> AsyncIterator[InstalledCase]:
    async with a_world(tmp_path) as world:
        clock = [0.0]
        yield InstalledCase(world, clock, InstalledRepositories(world.pipeline.app, lambda: clock[0]))


async def test_a_request_lists_a_hundred_repositories(case: InstalledCase) -> None:
    for number in range(1, MANY):
        case.app.install(case.world.github.create_repository(f"octocat/compiler-{number}"))
    (installation,) = await case.installed.installations()
    listed = await case.installed.repositories_of(installation.id)
    assert len({repository.id for repository in listed}) == MANY
    assert case.requests() == (1, 3)
    assert case.world.github.requests.count("POST", "/app/installations/{installation_id}/access_tokens") == 1


async def test_pages_after_the_first_are_read_at_once(case: InstalledCase) -> None:
    """With a second each, 2,000 repositories would take 20 seconds, and the first visitor of `/` waits for three."""
    for number in range(1, MANY):
        case.app.install(case.world.github.create_repository(f"octocat/compiler-{number}"))
    (installation,) = await case.installed.installations()
    faults = case.world.github.faults
    second, third = (faults.pause("GET", REPOSITORIES, when="before", skip=1) for _ in range(2))
    listing = asyncio.create_task(case.installed.repositories_of(installation.id))
    async with asyncio.timeout(DEADLINE):
        await asyncio.gather(second.reached.wait(), third.reached.wait())
        faults.clear()
        assert len({repository.id for repository in await listing}) == MANY


async def test_long_lists_are_read_one_page_after_the_other_and_to_their_end(
    case: InstalledCase,
) -> None:
    """At once, 450 pages would use up what GitHub allows for a minute, and the list would fail again and again."""
    patient = InstalledRepositories(case.world.pipeline.app, soon=2)
    for number in range(1, MANY):
        case.app.install(case.world.github.create_repository(f"octocat/compiler-{number}"))
    (installation,) = await case.installed.installations()
    third = case.world.github.faults.pause("GET", REPOSITORIES, when="before", skip=2)
    listing = asyncio.create_task(patient.repositories_of(installation.id))
    async with asyncio.timeout(DEADLINE):
        await third.reached.wait()
        # Meanwhile the list grows by a page.
        for number in range(MANY, MANY + 100):
            case.app.install(case.world.github.create_repository(f"octocat/compiler-{number}"))
        third.resume()
        assert len({repository.id for repository in await listing}) == MANY + 100


async def test_an_installation_and_a_repository_are_described(case: InstalledCase) -> None:
    secret = case.world.github.create_repository("octocat/secret", private=True)
    case.app.install(secret)
    case.world.repository.archived = True
    (installation,) = await case.installed.installations()
    assert (installation.account, installation.suspended, installation.permissions["metadata"]) == (
        "octocat",
        False,
        "read",
    )
    assert set(await case.installed.repositories_of(installation.id)) == {
        ListedRepository(case.world.repository.id, FULL_NAME, public=True, archived=True),
        ListedRepository(secret.id, "octocat/secret", public=False, archived=False),
    }


async def test_callers_share_a_list_for_five_minutes(case: InstalledCase) -> None:
    (installation,) = (await asyncio.gather(*(case.installed.installations() for _ in range(5))))[0]
    await asyncio.gather(*(case.installed.repositories_of(installation.id) for _ in range(5)))
    case.clock[0] = FRESH_SECONDS - 0.5
    await case.installed.installations()
    await case.installed.repositories_of(installation.id)
    assert case.requests() == (1, 1)
    case.clock[0] = FRESH_SECONDS
    await case.installed.installations()
    await case.installed.repositories_of(installation.id)
    assert case.requests() == (2, 2)


async def test_whoever_needs_a_new_list_gets_one(case: InstalledCase) -> None:
    (installation,) = await case.installed.installations()
    await case.installed.repositories_of(installation.id)
    case.world.repository.private = True
    (repository,) = await case.installed.read_repositories(installation.id)
    assert not repository.public
    assert list(await case.installed.repositories_of(installation.id)) == [repository]


async def test_a_suspended_installation_is_listed_without_its_repositories(case: InstalledCase) -> None:
    next(iter(case.app.installations.values())).suspend(case.world.github.users["hubot"])
    (installation,) = await case.installed.installations()
    assert (installation.suspended, installation.suspended_by) == (True, "hubot")
    assert case.world.pipeline.app.suspended is not None
    with pytest.raises(AccessPaused):
        await case.installed.repositories_of(installation.id)
