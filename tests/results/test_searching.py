"""Renamed tests of a run are searched for in a separate process, within limits, and the run is stored either way."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import closing
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from bot.core.untrusted.pool import Pool
from bot.core.untrusted.queue import Owner
from bot.results.compare.searching import FEW, FEW_CHARACTERS, SearchNeeded, SearchResults, write_in_thread
from bot.results.store.history.history import history
from bot.results.store.store import ResultsStore
from tests.results.uploads import ABOUT, REPOSITORY, SUITE, Upload

OWNER = Owner(REPOSITORY, "example-lab/adreno")
OLD, NEW = ({f"te/{file}.py::test_{number}": "passed" for number in range(60)} for file in ("test_old", "test_new"))
TEST = "te/test_new.py::test_7"


def refuse(removed: Iterable[str], new: Iterable[str]) -> Mapping[str, str]:
    raise AssertionError("the search ran in this process")


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ResultsStore]:
    with closing(ResultsStore(f"sqlite:///{tmp_path}/nightjar.db", renames=refuse)) as made:
        made.open()
        yield made


async def names_after_a_move(store: ResultsStore, pool: Pool) -> list[str]:
    """Store two runs between which all tests moved to another file, and return the test names of one of them."""
    for upload in (Upload(1, OLD), Upload(2, NEW)):
        assert await write_in_thread(partial(store.put, upload.run, upload.columns), pool, OWNER)
    return [segment.name for segment in store.read(history, REPOSITORY, SUITE, TEST)[ABOUT]]


async def test_a_search_runs_in_a_process_of_the_pool(store: ResultsStore) -> None:
    with closing(Pool(1)) as pool:
        assert await names_after_a_move(store, pool) == ["te/test_old.py::test_7", TEST]
        assert len(pool.pids) == 1


async def test_a_search_over_the_limit_finds_nothing_and_the_log_names_the_limit(store: ResultsStore) -> None:
    with closing(Pool(1)) as pool, capture_logs() as logs:
        pool.limits = replace(pool.limits, renames=replace(pool.limits.renames, wall=1e-6))
        assert await names_after_a_move(store, pool) == [TEST]
    (log_line,) = [log for log in logs if log["event"] == "the search for renamed tests is skipped"]
    assert log_line["reason"] == "searching for renamed tests took longer than 1e-06 seconds, the maximum"
    assert (log_line["repository"], log_line["removed"], log_line["added"]) == (REPOSITORY, 60, 60)


def found_nothing(removed: Iterable[str], new: Iterable[str]) -> Mapping[str, str]:
    return {}


@pytest.mark.parametrize(
    ("removed", "new", "at_once"),
    [
        ([f"a{number}" for number in range(FEW - 1)], ["b"], True),
        ([f"a{number}" for number in range(FEW)], ["b"], False),
        (["a" * (FEW_CHARACTERS - 1)], ["b"], True),
        (["a" * FEW_CHARACTERS], ["b"], False),
    ],
)
def test_only_few_short_names_are_searched_inside_a_transaction(
    removed: list[str], new: list[str], at_once: bool
) -> None:
    answers = SearchResults(found_nothing)
    if at_once:
        assert answers(removed, new) == {}
        return
    with pytest.raises(SearchNeeded) as needed:
        answers(removed, new)
    answers.add(needed.value.lists, {"a": "b"})
    assert answers(removed, new) == {"a": "b"}
