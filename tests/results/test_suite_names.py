"""A process's cache of a suite's names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa
from hypothesis import given, settings
from hypothesis import strategies as st
from nightjar_formats.columns import LAST, duration
from nightjar_formats.columns.collect import collect
from nightjar_formats.model import Case, Status

from bot.results.store.tables import names
from bot.results.store.tables.blobs import Placement, lay_out, lay_out_in_order, names_blob, placed_by_walk, raw
from bot.results.store.tables.database import ResultsDatabase
from bot.results.store.tables.names import SuiteRow

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


def test_added_names_are_found_at_their_places(database: ResultsDatabase) -> None:
    for new, expected in ((FIRST, FIRST), (MORE, FIRST + MORE)):
        with database.writing() as connection:
            suite = add(connection, new)
        with database.reading() as connection:
            assert names.all_names(connection, suite) == expected
            assert dict(names.ordinals_by_name(connection, suite)) == {
                name: ordinal for ordinal, name in enumerate(expected)
            }


def test_names_of_a_rolled_back_transaction_are_not_cached(database: ResultsDatabase) -> None:
    with database.writing() as connection:
        first = add(connection, FIRST)
    with database.reading() as connection:
        names.all_names(connection, first)
    with database.writing() as connection:
        undone = connection.begin_nested()
        assert names.uncommitted_names(connection, add(connection, MORE)).ordered == FIRST + MORE
        undone.rollback()
    with database.writing() as connection:
        after_rollback = add(connection, ["x", "y"])
    with database.reading() as connection:
        assert names.all_names(connection, after_rollback) == [*FIRST, "x", "y"]


def test_a_transaction_that_began_before_names_were_added_does_not_see_them(database: ResultsDatabase) -> None:
    with database.writing() as connection:
        first = add(connection, FIRST)
    with database.writing() as connection:
        current = add(connection, MORE)
    with database.reading() as connection:
        names.all_names(connection, current)
        assert names.all_names(connection, first) == FIRST
        assert names.find_ordinal(connection, first, "d") is None
        assert names.find_ordinal(connection, current, "d") == 3


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from([chr(code) for code in range(97, 113)]), unique=True, min_size=1), st.data())
def test_the_places_of_the_previous_run_give_the_same_layout(run: list[str], data: st.DataObject) -> None:
    all_names = data.draw(st.permutations([chr(code) for code in range(97, 113)]))
    cases = [
        Case(name, Status.SKIPPED if skipped else Status.PASSED, message=f"not on {name}" if skipped else "", seconds=1)
        for name, skipped in zip(run, data.draw(st.lists(st.booleans(), min_size=16)), strict=False)
    ]
    columns = collect(cases, lambda case: (case.name, ""))
    ordinal_of = {name: ordinal for ordinal, name in enumerate(all_names)}
    ordinals = [ordinal_of[name] for name in run]
    slowly = lay_out(columns, lambda: zip(ordinals, columns.tests, strict=True), len(all_names))
    assert Placement(ordinals).lay_out(columns) == slowly


def test_a_layout_leaves_out_zeros_at_the_end_and_nothing_else() -> None:
    for code in range(LAST + 1):
        known, absent = Case("a", Status.PASSED, seconds=duration(code)), [Case("b", Status.PASSED, seconds=None)]
        laid_out = lay_out_in_order(collect([known, *absent], lambda case: (case.name, "")), is_new=True)
        assert (raw(laid_out.durations), raw(laid_out.statuses)) == (bytes([code]) if code else b"", b"\1\1")


def test_the_places_of_a_run_are_found_by_its_names_alone(database: ResultsDatabase) -> None:
    with database.writing() as connection:
        suite = add(connection, FIRST)
    with database.reading() as connection:
        assert names.place_names(connection, suite, [names_blob(["c", "d"])]) == [2, None]
        placed = names.place_names(connection, suite, [names_blob(["c", "a"])])
    with database.writing() as connection:
        grown = add(connection, MORE)
    with database.reading() as connection:
        assert names.place_names(connection, grown, [names_blob(["c", "a"])]) is placed
        assert isinstance(names.place_names(connection, grown, [names_blob(["c", "d"])]), Placement)
        assert names.place_names(connection, grown, [names_blob(["a", "c"])]) is not placed


def test_names_too_many_for_memory_are_walked_in_their_order() -> None:
    blocks = [names_blob(["c", "d"]), names_blob(["a"])]
    assert list(placed_by_walk(blocks)) == [(0, hash("c")), (1, hash("d")), (2, hash("a"))]
