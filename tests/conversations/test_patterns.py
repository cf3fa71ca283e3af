"""Repositories that app.yaml does not name: a pattern of their owner gives them their settings."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bot.github.repositories.installed import InstalledRepositories
from bot.github.repositories.known import LeftAlone
from bot.timers.timers import timers_of
from sandbox import Repository
from tests.conversations.town import PEOPLE, REPOSITORY, Town, replica_of
from tests.conversations.town import town as start_town

CONFIG = """
repositories:
  octocat/*:
    nightly: {at: '03:00', timezone: UTC, require: []}
    slow_tests: {status: ci/pattern}
  octocat/compiler:
    slow_tests: {status: ci/own}
"""


@pytest.fixture
async def town(tmp_path: Path) -> AsyncIterator[Town]:
    async with start_town(f"sqlite:///{tmp_path}/nightjar.db", config=CONFIG) as town:
        await town.started()
        await town.quiet()
        yield town


def create(town: Town, name: str) -> Repository:
    """Create a repository with the people of the town, and install the App on it."""
    repository = town.github.create_repository(name, people=PEOPLE)
    town.app.install(repository)
    return repository


async def test_a_new_repository_is_served_with_the_settings_of_its_pattern(town: Town) -> None:
    tools = create(town, "octocat/tools")
    pull = tools.open_pull_request("hubot", "Faster")
    pull.comment("hubot", "@ci help")
    own = town.repo.open_pull_request("hubot", "Slower")
    await town.quiet()
    assert len(town.answers(pull)) == 1
    assert [status.context for status in tools.statuses(pull.head_sha)] == ["ci/pattern"]
    assert [status.context for status in town.repo.statuses(own.head_sha)] == ["ci/own"]
    assert [timer.repository for timer in timers_of(town.bot.config)] == [REPOSITORY, "octocat/tools"]
    await town.bot.timers.announce("octocat/tools", "nightly", "2026-11-20T03:00:00Z")
    await town.quiet()
    assert "refs/heads/nightly" in tools.refs
    assert await town.failures() == []


async def test_pages_and_the_api_know_it_and_no_other_name(town: Town) -> None:
    create(town, "octocat/tools")
    await town.quiet()
    status, _, answer = await town.ask("/api/v1/repos/Octocat/Tools/timers")
    assert (status, [timer["name"] for timer in answer["timers"]]) == (200, ["nightly"])
    asked = town.github.requests.count("GET", "/repos/{owner}/{repo}/installation")
    for name in ("octocat/unheard-of", "octocat/*", "triager/tools"):
        status, _, _ = await town.ask(f"/api/v1/repos/{name}/timers")
        assert status in {400, 401, 404}
    # A stranger's guesses cost GitHub nothing: no name is asked for that the App is not installed on.
    assert town.github.requests.count("GET", "/repos/{owner}/{repo}/installation") == asked


async def test_a_repository_of_another_owner_is_ignored_although_the_app_is_installed_there(town: Town) -> None:
    other = create(town, "triager/tools")
    pull = other.open_pull_request("hubot", "Faster")
    pull.comment("hubot", "@ci help")
    await town.quiet()
    assert (town.answers(pull), list(town.bot.config.repositories)) == ([], [REPOSITORY])


async def test_a_transferred_repository_has_no_settings_any_longer(town: Town) -> None:
    create(town, "triager/tools")
    moving = create(town, "octocat/moving")
    await town.quiet()
    assert "octocat/moving" in town.bot.config.repositories
    moving.transfer("octocat", "triager")
    pull = moving.open_pull_request("hubot", "Faster")
    pull.comment("hubot", "@ci help")
    await town.quiet()
    assert (town.answers(pull), list(town.bot.config.repositories)) == ([], [REPOSITORY])


async def test_a_repository_that_is_taken_off_the_app_is_listed_no_longer(town: Town) -> None:
    tools = create(town, "octocat/tools")
    await town.quiet()
    installation = town.app.installation_of(tools.owner)
    assert installation is not None
    installation.remove(tools)
    await town.quiet()
    stored = await town.bot.pipeline.repositories.get(tools.id)
    assert stored is not None
    assert stored.away is LeftAlone.REMOVED
    assert list(town.bot.config.repositories) == [REPOSITORY]
    town.app.install(tools)
    await town.quiet()
    assert list(town.bot.config.repositories) == [REPOSITORY, "octocat/tools"]


async def test_a_replica_learns_what_another_has_found_on_github(postgres_with_tables: str) -> None:
    async with start_town(postgres_with_tables, config=CONFIG) as town:
        await town.started()
        town.github.webhooks.lose("installation_repositories")
        create(town, "octocat/quiet")
        await town.quiet()
        assert list(town.bot.config.repositories) == [REPOSITORY]
        async with replica_of(town, CONFIG, time.time) as replica:
            await replica.matching.discover(InstalledRepositories(replica.github))
            assert list(replica.config.repositories) == [REPOSITORY, "octocat/quiet"]
        await town.bot.matching.refresh()
        assert list(town.bot.config.repositories) == [REPOSITORY, "octocat/quiet"]
        async with replica_of(town, CONFIG, time.time) as restarted:
            assert list(restarted.config.repositories) == [REPOSITORY, "octocat/quiet"]
