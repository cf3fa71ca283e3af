"""The records about a repository, even after a crash."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.app.load import parse_config
from bot.core.events import Delivery, Json, Payload, Repository
from bot.engine.database import Database
from bot.engine.records import Records
from bot.engine.sql.errors import DatabaseFailure
from bot.github.pull_heads import REPOSITORY_ID, RepositoryId
from bot.github.repositories.known import KNOWN_REPOSITORY, KnownRepository, LeftAlone, Repositories
from tests.counted import Work, counted
from tests.tables import with_tables

NAME = "octocat/compiler"
CONFIG = parse_config(f"repositories: {{{NAME}: {{}}}}".encode(), "app.yaml")


@pytest.mark.parametrize("record", [REPOSITORY_ID.of(NAME).name, KNOWN_REPOSITORY.of(7).name])
async def test_a_repository_is_recorded_completely_although_the_first_try_ended_between_two_writes(
    tmp_path: Path, record: str
) -> None:
    database = Database(with_tables(f"sqlite:///{tmp_path / 'nightjar.db'}"))
    await database.open()
    records = Records(database.connector)
    await database.connector.execute_query_async(
        "CREATE TRIGGER fault BEFORE INSERT ON nightjar_records"
        f" WHEN NEW.key = '{record}' BEGIN SELECT RAISE(ABORT, 'fault'); END"
    )
    with pytest.raises(DatabaseFailure):
        await Repositories(CONFIG, records).see(7, NAME)
    await database.connector.execute_query_async("DROP TRIGGER fault")
    await Repositories(CONFIG, records).see(7, NAME)
    assert await records.get(KNOWN_REPOSITORY.of(7)) == KnownRepository(7, NAME, NAME)
    assert await records.get(REPOSITORY_ID.of(NAME)) == RepositoryId(7)
    await database.close()


async def test_a_reason_that_another_process_has_stored_since_is_replaced(tmp_path: Path) -> None:
    database = Database(with_tables(f"sqlite:///{tmp_path / 'nightjar.db'}"))
    await database.open()
    released = []

    async def release() -> None:
        released.append(NAME)

    records = Records(database.connector)
    first_process, second_process = (Repositories(CONFIG, records, release) for _ in range(2))
    await first_process.see(7, NAME, away=LeftAlone.NO)
    await second_process.see(7, NAME, away=LeftAlone.SUSPENDED)
    assert released == []
    await first_process.see(7, NAME, away=LeftAlone.NO)
    assert await records.get(KNOWN_REPOSITORY.of(7)) == KnownRepository(7, NAME, NAME)
    assert released == [NAME]
    await database.close()


@pytest.mark.parametrize("listed", [[{"id": 7, "full_name": NAME}], []])
async def test_a_repository_that_may_come_back_does_not_after_the_app_was_uninstalled(
    tmp_path: Path, listed: list[Json]
) -> None:
    """GitHub lists only the repositories that the installation had in the end."""
    database = Database(with_tables(f"sqlite:///{tmp_path / 'nightjar.db'}"))
    await database.open()
    repositories = Repositories(CONFIG, Records(database.connector))
    await repositories.see(7, NAME, away=LeftAlone.REMOVED)
    body = {"action": "deleted", "installation": {"id": 1, "account": {"login": "Octocat"}}, "repositories": listed}
    await repositories.note(Delivery("1", "installation", Payload(body), 0.0))
    repository = await repositories.get(7)
    assert repository is not None
    assert repository.away is LeftAlone.UNINSTALLED
    await database.close()


async def first_sight(url: str, count: int) -> Work:
    """Let a bot see each of `count` repositories for the first time; return what the last one cost."""
    config = parse_config(f"repositories: {{{', '.join(f'octocat/r{n}: {{}}' for n in range(count))}}}".encode(), "a")
    database = Database(url)
    await database.open()
    repositories = Repositories(config, Records(database.connector))
    for number in range(count - 1):
        await repositories.see(number, f"octocat/r{number}")
    with counted(database.connector) as work:
        assert await repositories.name_of(Repository(count, f"octocat/r{count - 1}", None)) is not None
        await repositories.see(count, f"octocat/r{count - 1}")
    # The doctor asks this about each repository in each of its rounds.
    with counted(database.connector) as repeated:
        assert await repositories.holder("octocat/r0", 0) is None
        assert await repositories.named("octocat/r0") == KnownRepository(0, "octocat/r0", "octocat/r0")
    await database.close()
    return Work(work.statements + repeated.statements, work.rows + repeated.rows)


async def test_the_first_sight_of_a_repository_costs_the_same_beside_any_number_of_others(url_with_tables: str) -> None:
    work = await first_sight(url_with_tables, 40)
    assert (work.statements <= 10, work.rows <= 6) == (True, True), work


async def test_another_repository_gets_a_name_only_after_its_holder_is_gone(url_with_tables: str) -> None:
    database = Database(url_with_tables)
    await database.open()
    repositories = Repositories(CONFIG, Records(database.connector))
    await repositories.see(7, NAME)
    await repositories.see(7, "octocat/renamed")
    await repositories.see(8, NAME)
    assert (await repositories.get(8), await repositories.name_of(Repository(8, NAME, None))) == (None, None)
    await repositories.see(7, "octocat/renamed", away=LeftAlone.DELETED)
    await repositories.see(8, NAME)
    # A late message about the repository that had the name before does not take it away again.
    await repositories.see(7, "octocat/renamed", away=LeftAlone.UNINSTALLED)
    assert await repositories.named(NAME) == KnownRepository(8, NAME, NAME)
    await repositories.see(9, NAME)
    assert await repositories.get(9) is None
    await database.close()


@pytest.mark.parametrize(
    ("sentence", "away"),
    [
        ("", LeftAlone.NO),
        ("it is archived on GitHub", LeftAlone.ARCHIVED),
        ("it was deleted on GitHub", LeftAlone.DELETED),
        ("the App was taken off it", LeftAlone.REMOVED),
        ("the App was uninstalled from its account", LeftAlone.UNINSTALLED),
        ("the App's installation on its account is suspended", LeftAlone.SUSPENDED),
    ],
)
def test_a_reason_that_was_stored_as_a_sentence_is_read(sentence: str, away: LeftAlone) -> None:
    stored = {"id": 7, "name": NAME, "full_name": NAME, "away": sentence}
    assert KNOWN_REPOSITORY.load("known-repository:7", stored, 1) == KnownRepository(7, NAME, NAME, away)


def test_a_reason_is_stored_by_a_name_that_does_not_change_with_its_text() -> None:
    assert KNOWN_REPOSITORY.dump(KnownRepository(7, NAME, NAME, LeftAlone.ARCHIVED))["away"] == "archived"
