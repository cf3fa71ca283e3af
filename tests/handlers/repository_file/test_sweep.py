"""The sweep finds changes that no webhook announced: rarely, once, and whatever else fails."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from bot.app.load import parse_config
from bot.core.errors import TryAgain
from bot.github.client import GitHub
from bot.github.repositories.in_force import stored_file_of
from bot.github.repositories.installed import InstalledRepositories
from handlers.repository_file.sweep import PAUSE, RepositoryFileSweep
from tests.handlers.driver import FULL_NAME, World, a_world

FILE = ".github/nightjar.yaml"
CONFIG = """
repositories:
  octocat/removed:
  octocat/compiler: {%s}
  octocat/other: {repository_file: false}
"""


@dataclass
class Desk:
    """A sweep with a clock set by the test; its announcements are processed as the engine processes them."""

    world: World
    now: float = 1_795_152_400.0
    guids: list[str] = field(default_factory=list)

    async def sweep(self, keys: str = "") -> None:
        """Sweep, with these settings for the repository in app.yaml."""
        config = parse_config((CONFIG % keys).encode(), "app.yaml")
        sweep = RepositoryFileSweep(
            config,
            self.world.records,
            announce_event=self.accept,
            github_for=self.github,
            installed=lambda: InstalledRepositories(self.world.pipeline.app, lambda: self.now),
            clock=lambda: self.now,
        )
        self.world.github.requests.clear()
        self.world.configure(config)
        await sweep.sweep()

    async def accept(self, guid: str, event: str, body: str, lock: str, *, not_before: float | None = None) -> bool:
        assert lock == f"ref:{self.world.repository.id}:refs/heads/main"
        self.guids.append(guid)
        await self.world.deliver(guid, event, body)
        return True

    async def github(self, repository: str) -> GitHub:
        if repository != FULL_NAME:
            raise TryAgain("GitHub is unavailable")
        app = self.world.pipeline.app
        return await app.reader(repository)

    @property
    def asked(self) -> dict[str, int]:
        records = self.world.github.requests.of_installation
        return dict(Counter(r.route.removeprefix("/repos/{owner}/{repo}") for r in records))

    async def in_force(self) -> str:
        return (await stored_file_of(self.world.records, FULL_NAME)).good.text


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with a_world(tmp_path) as world:
        yield Desk(world)


def push(desk: Desk, text: str | None) -> None:
    """Push the file, and lose the webhook."""
    desk.world.repository.push("main", {FILE: text}, by="octocat")
    desk.world.github.webhooks.held.clear()


async def test_without_changes_a_sweep_costs_one_request(desk: Desk) -> None:
    await desk.sweep()
    assert (desk.asked, desk.guids) == ({"/contents/{path}": 1}, [])


async def test_the_next_sweep_comes_only_after_a_while(desk: Desk) -> None:
    await desk.sweep()
    desk.now += PAUSE - 1
    await desk.sweep()
    assert desk.asked == {}
    desk.now += 2
    await desk.sweep()
    assert desk.asked == {"/contents/{path}": 1}


async def test_a_push_without_a_webhook_takes_effect_even_if_it_removes_the_file(desk: Desk) -> None:
    for text in ("help: false\n", "help: true\n", None, "help: false\n"):
        push(desk, text)
        await desk.sweep()
        assert await desk.in_force() == (text or "")
        desk.now += PAUSE
    assert len(set(desk.guids)) == 4


async def test_a_file_with_faults_is_announced_once_and_the_last_valid_one_stays(desk: Desk) -> None:
    push(desk, "help: false\n")
    await desk.sweep()
    push(desk, "help: maybe\n")
    for _ in range(2):
        desk.now += PAUSE
        await desk.sweep()
    assert await desk.in_force() == "help: false\n"
    assert len(desk.guids) == 2
    (run,) = desk.world.repository.check_runs(desk.world.repository.branch("main"), "nightjar/config")
    assert run.title == "1 error"


async def test_a_fault_caused_by_app_yaml_ends_when_app_yaml_changes(desk: Desk) -> None:
    push(desk, "nightly: {require: [gpu]}\n")
    await desk.sweep()
    assert await desk.in_force() == ""
    await desk.sweep("nightly: {}")
    assert await desk.in_force() == "nightly: {require: [gpu]}\n"
    assert (await stored_file_of(desk.world.records, FULL_NAME)).faults == 0
    desk.now += PAUSE
    await desk.sweep()
    # As much of the valid file as possible is in force, and its faults are reported.
    assert await desk.in_force() == "nightly: {require: [gpu]}\n"
    assert (await stored_file_of(desk.world.records, FULL_NAME)).faults == 1
