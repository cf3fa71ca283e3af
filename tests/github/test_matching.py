"""Repositories that match a pattern: they are known by their ID, never of another owner, and to every process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from bot.app.load import parse_config
from bot.config import Config
from bot.core.events import Repository
from bot.engine.database import Database
from bot.engine.records import PAGE, Records
from bot.github.repositories.installed import INSTALLATIONS, REPOSITORIES, InstalledRepositories
from bot.github.repositories.known import KNOWN_REPOSITORY, KnownRepository, LeftAlone, Repositories
from bot.github.repositories.matching import MOST_CHANGES, PATTERN_CHANGES, MatchingRepositories, PatternChanges
from tests.handlers.driver import World, a_world

CONFIG = b"repositories: {octo-org/own: {help: false}, 'octo-org/*': }"


class CountingConnector:
    """A connector that counts its statements, and those of them that write."""

    def __init__(self, connector: Any) -> None:
        self.connector = connector
        self.reads = self.writes = 0

    async def execute_query_all_async(self, query: str, **arguments: Any) -> Any:
        """Run a statement that returns rows."""
        is_read = query.lstrip().startswith("SELECT")
        self.reads, self.writes = self.reads + is_read, self.writes + (not is_read)
        return await self.connector.execute_query_all_async(query, **arguments)

    async def execute_query_async(self, query: str, **arguments: Any) -> None:
        """Run a statement that returns nothing."""
        self.writes += 1
        await self.connector.execute_query_async(query, **arguments)


class Process:
    """What one process knows, with its own reading of app.yaml and a count of its statements."""

    def __init__(self, connector: Any, text: bytes = CONFIG) -> None:
        self.config: Config = parse_config(text, "app.yaml")
        self.connector = CountingConnector(connector)
        self.records = Records(self.connector)  # type: ignore[arg-type]  # it has what records need
        self.repositories = Repositories(self.config, self.records)
        self.matching = MatchingRepositories(self.config, self.records, self.repositories)

    @property
    def listed(self) -> list[str]:
        """Return the names in the order of `config.repositories`, without the one of app.yaml."""
        return [name for name in self.config.repositories if name != "octo-org/own"]

    async def name_of(self, repository_id: int, full_name: str) -> str | None:
        """Return the name in app.yaml of a repository in a payload."""
        return await self.repositories.name_of(Repository(repository_id, full_name, None))


@pytest.fixture
def process(database: Database) -> Process:
    return Process(database.connector)


@pytest.fixture
def replica(database: Database) -> Process:
    return Process(database.connector)


async def test_a_repository_is_listed_once_it_was_seen(process: Process) -> None:
    await process.repositories.see(7, "Octo-Org/MLIR")
    await process.repositories.see(8, "octo-org2/mlir")
    assert process.listed == ["Octo-Org/MLIR"]
    assert await process.repositories.get(7) == KnownRepository(7, "Octo-Org/MLIR", "Octo-Org/MLIR")
    assert await process.repositories.get(8) is None
    assert [repository.id for repository in await process.repositories.all()] == [7]


async def test_the_first_payload_of_a_repository_already_has_settings(process: Process) -> None:
    """The webhook server decides before anything is stored whether a delivery can have an effect."""
    assert await process.name_of(7, "octo-org/mlir") == "octo-org/mlir"
    assert process.config.repository("octo-org/mlir") is not None
    assert await process.name_of(8, "octo-org2/mlir") is None
    assert await process.name_of(9, "octo-org/own") == "octo-org/own"


async def test_a_renamed_repository_has_its_new_name_at_once_and_its_settings_still(process: Process) -> None:
    await process.repositories.see(7, "octo-org/mlir")
    await process.repositories.see(7, "octo-org/llvm")
    assert process.listed == ["octo-org/llvm"]
    assert await process.name_of(7, "octo-org/llvm") == "octo-org/llvm"
    await process.repositories.see(8, "octo-org/mlir")
    assert process.listed == ["octo-org/llvm", "octo-org/mlir"]


async def test_a_repository_that_is_transferred_to_another_owner_leaves_the_pattern(
    process: Process, replica: Process
) -> None:
    await process.repositories.see(7, "octo-org/mlir")
    assert await replica.name_of(7, "octo-org/mlir") == "octo-org/mlir"
    await process.repositories.see(7, "hubot/mlir")
    assert process.listed == []
    assert process.config.repository("octo-org/mlir") is process.config.repository("hubot/mlir") is None
    for each_process in (process, replica):
        assert await each_process.repositories.get(7) is None
        assert await each_process.name_of(7, "hubot/mlir") is None
    # A payload from before the transfer does not bring it back.
    assert await process.name_of(7, "octo-org/mlir") is None


async def test_a_process_that_missed_the_transfer_gives_the_new_owner_no_settings(
    process: Process, replica: Process
) -> None:
    await replica.repositories.see(7, "octo-org/mlir")
    await process.repositories.see(7, "hubot/mlir")
    assert await replica.name_of(7, "hubot/mlir") is None


async def test_the_settings_of_a_name_follow_the_repository_although_a_pattern_matches_its_new_name(
    process: Process,
) -> None:
    await process.repositories.see(7, "octo-org/own")
    await process.repositories.see(7, "octo-org/renamed")
    assert await process.name_of(7, "octo-org/renamed") == "octo-org/own"
    assert process.listed == []
    # The next repository of the old name gets neither these settings nor those of the pattern.
    await process.repositories.see(8, "octo-org/own")
    assert await process.name_of(8, "octo-org/own") is None


async def test_a_repository_without_an_entry_of_its_own_any_longer_falls_to_the_pattern(
    process: Process, database: Database
) -> None:
    await process.repositories.see(7, "octo-org/own")
    await process.repositories.see(7, "octo-org/renamed")
    restarted = Process(database.connector, b"repositories: {'octo-org/*': }")
    await restarted.matching.load()
    assert list(restarted.config.repositories) == ["octo-org/renamed"]
    assert await restarted.name_of(7, "octo-org/renamed") == "octo-org/renamed"


@pytest.mark.parametrize(
    ("away", "is_listed", "has_settings"),
    [
        (LeftAlone.NO, True, True),
        (LeftAlone.ARCHIVED, True, True),
        (LeftAlone.SUSPENDED, True, True),
        (LeftAlone.REMOVED, False, True),
        (LeftAlone.UNINSTALLED, False, False),
        (LeftAlone.DELETED, False, False),
    ],
)
async def test_a_pattern_applies_to_what_the_app_is_installed_on(
    process: Process, replica: Process, away: LeftAlone, *, is_listed: bool, has_settings: bool
) -> None:
    """Jobs of a repository that was taken off the App wait for it, so its settings stay."""
    await process.repositories.see(7, "octo-org/mlir")
    await process.repositories.see(7, "octo-org/mlir", away=away)
    await replica.matching.load()
    for each_process in (process, replica):
        assert (each_process.listed == ["octo-org/mlir"]) is is_listed
        assert (each_process.config.repository("octo-org/mlir") is not None) is has_settings
    await process.repositories.see(7, "octo-org/mlir", away=LeftAlone.NO)
    assert process.listed == ["octo-org/mlir"]


async def test_a_process_knows_at_its_start_what_is_stored(process: Process, replica: Process) -> None:
    for number in range(3):
        await process.repositories.see(number, f"octo-org/r{number}")
    await process.repositories.see(9, "octo-org/own")
    await replica.matching.load()
    assert replica.listed == [f"octo-org/r{number}" for number in range(3)]


async def test_many_repositories_are_read_a_page_at_a_time(process: Process, database: Database) -> None:
    statement = "INSERT INTO nightjar_records (key, value, version, at) VALUES (%(key)s, %(value)s, 2, 0)"
    for number in range(2 * PAGE + 1):
        value = f'{{"id": {number}, "name": "octo-org/r{number}", "full_name": "octo-org/r{number}", "away": ""}}'
        await database.connector.execute_query_async(statement, key=f"known-repository:{number}", value=value)
    await process.matching.load()
    assert (len(process.listed), process.connector.reads, process.connector.writes) == (2 * PAGE + 1, 4, 0)


async def test_a_replica_learns_what_another_has_stored_by_reading_only_that(
    process: Process, replica: Process
) -> None:
    await process.repositories.see(1, "octo-org/first")
    await process.matching.refresh()
    await replica.matching.load()
    replica.connector.reads = 0
    await replica.matching.refresh()
    assert (replica.connector.reads, replica.connector.writes) == (1, 0)
    await process.repositories.see(2, "octo-org/second")
    await process.repositories.see(1, "hubot/first")
    await process.matching.refresh()
    await replica.matching.refresh()
    assert replica.listed == process.listed == ["octo-org/second"]
    assert (replica.connector.reads, replica.connector.writes) == (3, 0)


async def test_a_replica_that_has_missed_too_many_changes_reads_all(process: Process, replica: Process) -> None:
    await replica.matching.load()
    for number in range(3):
        await process.repositories.see(number, f"octo-org/r{number}")
    await process.matching.refresh()
    # As after a thousand more changes of the last two.
    changes = PatternChanges(3, (0, 1, 2)).with_changes([1, 2] * (MOST_CHANGES // 2))
    assert changes == PatternChanges(3 + MOST_CHANGES, (1, 2) * (MOST_CHANGES // 2))
    await process.records.put(PATTERN_CHANGES.of(), changes)
    await replica.matching.refresh()
    assert replica.listed == [f"octo-org/r{number}" for number in range(3)]


async def test_a_process_without_patterns_reads_and_writes_nothing(database: Database) -> None:
    plain = Process(database.connector, b"repositories: {octo-org/own: }")
    await plain.matching.load()
    await plain.matching.refresh()
    await plain.matching.run()
    assert (plain.connector.reads, plain.connector.writes) == (0, 0)


@pytest.fixture
async def world(tmp_path: Path) -> AsyncIterator[World]:
    async with a_world(tmp_path) as world:
        yield world


class Discovery:
    """A process that lists the repositories of `octocat` on GitHub, where the App is installed on some."""

    def __init__(self, world: World) -> None:
        self.world = world
        (self.app,) = world.github.apps.values()
        self.process = Process(world.connector, b"repositories: {'octocat/c*': , 'hubot/*': }")
        self.installed = InstalledRepositories(world.pipeline.app)

    async def run(self) -> tuple[list[str], str]:
        """List once; return the names that `config.repositories` has then, sorted, and the line for the log."""
        for number in self.app.installations:
            self.world.pipeline.app.forget(number)  # as after an hour, when the token of the last listing has ended
        line = await self.process.matching.discover(self.installed)
        return sorted(self.process.config.repositories), line


async def test_a_listing_finds_what_no_webhook_told(world: World) -> None:
    discovery = Discovery(world)
    create, install = world.github.create_repository, discovery.app.install
    renamed, removed, archived = (create(f"octocat/c{number}") for number in range(3))
    install(renamed, removed, archived, create("octocat/other"))
    install(create("triager/compiler"))
    names = ["octocat/c0", "octocat/c1", "octocat/c2", "octocat/compiler"]
    assert await discovery.run() == (names, "5 repositories listed, 3 changed")
    requests = world.github.requests
    # One list of installations, and one for `octocat`: `triager` has no pattern, and `hubot` no installation.
    assert (requests.count("GET", INSTALLATIONS), requests.count("GET", REPOSITORIES)) == (1, 1)
    renamed.rename("octocat", "code")
    discovery.app.installation_of(removed.owner).repositories.remove(removed)  # type: ignore[union-attr]
    archived.archive("octocat")
    install(create("octocat/c3"))
    names = ["octocat/c2", "octocat/c3", "octocat/code", "octocat/compiler"]
    assert await discovery.run() == (names, "5 repositories listed, 4 changed")
    stored = await discovery.process.records.under(KNOWN_REPOSITORY)
    assert {repository.full_name: repository.away for repository in stored.values()} == {
        "octocat/compiler": LeftAlone.NO,
        "octocat/code": LeftAlone.NO,
        "octocat/c1": LeftAlone.REMOVED,
        "octocat/c2": LeftAlone.ARCHIVED,
        "octocat/c3": LeftAlone.NO,
    }


async def test_a_listing_that_finds_nothing_new_writes_nothing_and_reads_a_page(world: World) -> None:
    discovery = Discovery(world)
    discovery.app.install(*(world.github.create_repository(f"octocat/c{number}") for number in range(150)))
    names, _ = await discovery.run()
    assert len(names) == 151
    connector = discovery.process.connector
    connector.reads = connector.writes = 0
    assert await discovery.run() == (names, "151 repositories listed, 0 changed")
    assert (connector.reads, connector.writes) == (1, 0)
    assert world.github.requests.count("GET", REPOSITORIES) == 4


async def test_a_repository_that_is_renamed_out_of_the_pattern_leaves_it(world: World) -> None:
    discovery = Discovery(world)
    assert (await discovery.run())[0] == ["octocat/compiler"]
    world.repository.rename("octocat", "interpreter")
    assert (await discovery.run())[0] == []


async def test_the_repositories_of_a_suspended_installation_wait_and_those_of_a_deleted_one_end(world: World) -> None:
    discovery = Discovery(world)
    installation = discovery.app.installation_of(world.repository.owner)
    assert installation is not None
    steps: list[tuple[Callable[[], None], LeftAlone, list[str]]] = [
        (installation.suspend, LeftAlone.SUSPENDED, ["octocat/compiler"]),
        (installation.unsuspend, LeftAlone.NO, ["octocat/compiler"]),
        (installation.delete, LeftAlone.UNINSTALLED, []),
    ]
    assert (await discovery.run())[0] == ["octocat/compiler"]
    for change, away, names in steps:
        change()
        assert (await discovery.run())[0] == names
        stored = await discovery.process.records.get(KNOWN_REPOSITORY.of(world.repository.id))
        assert stored is not None
        assert stored.away is away
