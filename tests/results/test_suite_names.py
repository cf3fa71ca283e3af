"""What a process remembers of the names of a suite."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from bot.results.store import names
from bot.results.store.blobs import names_blob
from bot.results.store.database import ResultsDatabase
from bot.results.store.names import SuiteNames, SuiteRow

FIRST, MORE = ["a", "b", "c"], ["d", "e"]


@pytest.fixture
def database(tmp_path: Path) -> Iterator[ResultsDatabase]:
    """Open the tables of results."""
    made = ResultsDatabase(f"sqlite:///{tmp_path}/nightjar.db")
    made.open()
    yield made
    made.close()


def add(connection: sa.Connection, new: list[str]) -> SuiteRow:
    suite = names.find(connection, "octocat/compiler", "operators", make=True)
    assert suite is not None
    return names.add(connection, suite, len(new), names_blob(new))


def test_names_that_were_added_are_known_at_their_places(database: ResultsDatabase) -> None:
    known = SuiteNames()
    for new, every in ((FIRST, FIRST), (MORE, FIRST + MORE)):
        with database.writing() as connection:
            suite = add(connection, new)
        with database.reading() as connection:
            assert known.every(connection, suite) == every
            assert dict(known.places(connection, suite)) == {name: place for place, name in enumerate(every)}


def test_names_whose_transaction_is_undone_are_not_remembered(database: ResultsDatabase) -> None:
    known = SuiteNames()
    with database.writing() as connection:
        first = add(connection, FIRST)
    with database.reading() as connection:
        known.every(connection, first)
    with database.writing() as connection:
        undone = connection.begin_nested()
        assert known.uncommitted(connection, add(connection, MORE)) == FIRST + MORE
        undone.rollback()
    with database.writing() as connection:
        other = add(connection, ["x", "y"])
    with database.reading() as connection:
        assert known.every(connection, other) == [*FIRST, "x", "y"]


def test_a_transaction_that_began_before_names_were_added_does_not_see_them(database: ResultsDatabase) -> None:
    known = SuiteNames()
    with database.writing() as connection:
        first = add(connection, FIRST)
    with database.writing() as connection:
        every = add(connection, MORE)
    with database.reading() as connection:
        known.every(connection, every)
        assert known.every(connection, first) == FIRST
        assert known.ordinal(connection, first, "d") is None
        assert known.ordinal(connection, every, "d") == 3
