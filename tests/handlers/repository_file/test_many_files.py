"""The sweep over many repositories: GitHub's lists say which files to read, and each read is stored at once."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path

import pytest

from bot.app.doctor.installed import InstallationScan
from bot.app.load import parse_config
from bot.github.repositories.installed import InstalledRepositories
from handlers.repository_file.records import LAST_SCANS, LastScans
from handlers.repository_file.sweep import LISTED_FROM, PAUSE, SWEEP_SECONDS, RepositoryFileSweep
from tests.handlers.driver import World, a_world

FILE = ".github/nightjar.yaml"
TOKEN = "POST /app/installations/{installation_id}/access_tokens"
CONTENTS, LIST = "GET /repos/{owner}/{repo}/contents/{path}", "GET /installation/repositories"
MANY = 20


@dataclass
class Floor:
    """Sweeps of an app.yaml with many repositories of one owner, each by another process."""

    world: World
    now: float = 1_795_152_400.0
    names: list[str] = field(default_factory=list)

    def create(self, number: int, owner: str = "octocat") -> None:
        (app,) = self.world.github.apps.values()
        for place in range(number):
            self.names.append(f"{owner}/part-{place}")
            app.install(self.world.github.create_repository(self.names[-1]))
        self.world.github.webhooks.held.clear()

    def process(self, stopwatch: Callable[[], float] = lambda: 0.0) -> RepositoryFileSweep:
        """Start a process: it remembers nothing but what is stored."""
        config = parse_config(("repositories:\n" + "".join(f"  {name}:\n" for name in self.names)).encode(), "app.yaml")
        self.world.configure(config)
        app = self.world.pipeline.app
        installed = InstalledRepositories(app, lambda: self.now)
        return RepositoryFileSweep(
            config,
            self.world.records,
            announce_event=self.world.accept,
            github_for=app.reader,
            installed=lambda: installed,
            clock=lambda: self.now,
            stopwatch=stopwatch,
        )

    async def check(self) -> None:
        """Let the doctor list the installations, as each server does when it starts."""
        self.process()
        await InstallationScan(self.world.pipeline.app, self.world.pipeline.config).states(())

    async def reads(self, sweep: RepositoryFileSweep) -> tuple[int, int]:
        """Sweep; return how many files and how many pages of lists it read."""
        self.world.github.requests.clear()
        await sweep.sweep()
        counts = self.world.github.requests.counts()
        return counts[CONTENTS], counts[LIST]

    def push(self, name: str, files: dict[str, str | None]) -> None:
        """Push, and lose the webhook."""
        self.world.github.clock.advance(seconds=1)
        self.world.github.repositories[name].push("main", files, by="octocat")
        self.world.github.webhooks.held.clear()


@pytest.fixture
async def floor(tmp_path: Path) -> AsyncIterator[Floor]:
    async with a_world(tmp_path) as world:
        yield Floor(world)


@pytest.mark.parametrize(("number", "pages"), [(LISTED_FROM, 1), (MANY, 1), (120, 2)])
async def test_after_the_first_reads_only_lists_are_read(floor: Floor, number: int, pages: int) -> None:
    floor.create(number)
    await floor.check()
    assert await floor.reads(floor.process()) == (number, pages)
    assert floor.world.github.requests.counts()[TOKEN] == 1
    floor.now += PAUSE
    sweep = floor.process()
    assert await floor.reads(sweep) == (0, pages)
    floor.now += PAUSE - 1
    assert await floor.reads(sweep) == (0, 0)
    floor.now += 1
    assert await floor.reads(sweep) == (0, pages)


async def test_a_push_whose_webhook_was_lost_is_found_among_many_repositories(floor: Floor) -> None:
    floor.create(MANY)
    await floor.process().sweep()
    floor.push("octocat/part-7", {FILE: "help: false\n"})
    floor.push("octocat/part-9", {"README.md": "New"})
    floor.now += PAUSE
    assert await floor.reads(floor.process()) == (2, 1)
    assert [event.event for event in floor.world.announced] == ["nightjar.repository-file"]


async def test_another_default_branch_may_have_another_file(floor: Floor) -> None:
    floor.create(MANY)
    await floor.process().sweep()
    repository = floor.world.github.repositories["octocat/part-3"]
    repository.push("next", {FILE: "help: false\n"}, by="octocat")
    repository.pushed_at = repository.created_at
    repository.default_branch = "next"
    floor.now += PAUSE
    assert await floor.reads(floor.process()) == (1, 1)
    assert len(floor.world.announced) == 1


async def test_the_next_process_goes_on_where_a_sweep_ended(floor: Floor) -> None:
    """Progress was stored at the end, so a sweep that took longer than a job may never stored any."""
    floor.create(MANY)
    reads = []
    for _ in range(5):
        ticks = count(0, SWEEP_SECONDS / 8)
        files, _ = await floor.reads(floor.process(lambda ticks=ticks: float(next(ticks))))  # type: ignore[misc]
        reads.append(files)
        floor.now += 1800.0
    assert max(reads) <= 8
    assert sum(reads) == MANY


async def test_a_process_that_is_killed_within_a_sweep_loses_one_read_at_most(floor: Floor) -> None:
    floor.create(MANY)
    ticks = count()

    def killing() -> float:
        if next(ticks) > MANY // 2:
            raise KeyboardInterrupt
        return 0.0

    with pytest.raises(KeyboardInterrupt):
        await floor.process(killing).sweep()
    done = floor.world.github.requests.counts()[CONTENTS]
    assert 0 < done < MANY
    assert await floor.reads(floor.process()) == (MANY - done, 1)


async def test_a_limit_ends_the_reads_of_its_owner_alone(floor: Floor) -> None:
    floor.create(MANY)
    floor.create(MANY, owner="example-lab")
    floor.world.github.faults.add(
        "GET", "/repos/{owner}/{repo}/contents/{path}", status=429, headers={"Retry-After": "600"}, skip=3, times=1
    )
    files, _ = await floor.reads(floor.process())
    assert files == 4 + MANY


async def test_a_repository_that_fails_is_tried_again_the_next_time(floor: Floor) -> None:
    floor.create(MANY)
    floor.world.github.faults.add("GET", "/repos/{owner}/{repo}/contents/{path}", status=403, skip=3, times=1)
    sweep = floor.process()
    assert (await floor.reads(sweep))[0] == MANY
    floor.now += 1800.0
    assert (await floor.reads(sweep))[0] == 1


async def test_what_an_earlier_version_stored_counts(floor: Floor) -> None:
    floor.create(MANY)
    await floor.world.records.put(LAST_SCANS.of(), LastScans(dict.fromkeys(floor.names, floor.now)))
    assert await floor.reads(floor.process()) == (0, 0)
    floor.now += PAUSE
    assert await floor.reads(floor.process()) == (MANY, 1)
