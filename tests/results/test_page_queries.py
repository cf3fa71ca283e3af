"""What pages read from the store: by indices on both databases, and no more statements for more tests."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from bot.results.store import schema
from bot.results.store.commits_with_results import CommitWithResults
from bot.results.store.database import ResultsDatabase
from bot.results.store.store import ResultsStore
from tests.results.plans import whole_tables_read
from tests.results.uploads import ABOUT, Upload, sha


@pytest.fixture
def filled(store: ResultsStore) -> ResultsStore:
    """Return a store of five commits of two suites on two targets; the last one is of a pull request."""
    for number in range(1, 6):
        for target in ("adreno", "hexagon"):
            for suite in ("operators", "relax"):
                tests = {f"test_{one}": "passed" for one in range(6)}
                upload = Upload(
                    number, tests, run_id=f"{suite}-1", target=target, suite=suite, mainline=number < 5,
                    pull_request=7 if number == 5 else None,
                )  # fmt: skip
                store.put(upload.run, upload.columns)
    return store


def test_the_newest_commits_of_a_target_are_listed_once_each(filled: ResultsStore) -> None:
    assert filled.commits.newest(ABOUT, 2) == [
        CommitWithResults(sha(5), 5000.0, mainline=False, pull_request=7),
        CommitWithResults(sha(4), 4000.0, mainline=True, pull_request=None),
    ]
    assert [one.sha for one in filled.commits.newest(ABOUT)] == [sha(number) for number in (5, 4, 3, 2, 1)]
    assert filled.commits.of(ABOUT, sha(3)) == CommitWithResults(sha(3), 3000.0, mainline=True, pull_request=None)
    assert filled.commits.of(ABOUT, sha(9)) is None
    assert filled.commits.suites(ABOUT, sha(3)) == ["operators", "relax"]


def test_commits_are_found_by_an_index(filled: ResultsStore) -> None:
    def work() -> None:
        filled.commits.newest(ABOUT)
        filled.commits.of(ABOUT, sha(3))
        filled.commits.suites(ABOUT, sha(3))

    statements, scans = whole_tables_read(work)
    assert statements == 6
    assert scans == []


def test_a_read_of_a_whole_table_is_seen(store: ResultsStore, database_url: str) -> None:
    database = ResultsDatabase(database_url)
    database.open()

    def work() -> None:
        with database.reading() as connection:
            connection.execute(sa.select(schema.points.c.id).where(schema.points.c.infra == "")).all()

    statements, scans = whole_tables_read(work)
    database.close()
    assert (statements, len(scans)) == (1, 1)
