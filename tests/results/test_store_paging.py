"""Runs, listed page by page."""

from __future__ import annotations

import pytest

from bot.results.store.lists.run_lists import list_runs
from bot.results.store.store import ResultsStore
from tests.results.uploads import LAB, REPOSITORY, Upload


def test_pages_contain_each_run_once_even_if_all_arrived_at_the_same_moment(store: ResultsStore) -> None:
    for number in range(7):
        store.put(Upload(number, {"a.py::test": "passed"}).run, Upload(number, {"a.py::test": "passed"}).columns)
    pages = [store.read(list_runs, REPOSITORY, limit=3)]
    while pages[-1]:
        pages.append(store.read(list_runs, REPOSITORY, lab=LAB, limit=3, last_listed=pages[-1][-1].key))
    assert [len(page) for page in pages] == [3, 3, 1, 0]
    assert [run for page in pages for run in page] == store.read(list_runs)
    assert len({run.key for page in pages for run in page}) == 7


def test_a_page_after_an_unknown_run_is_refused(store: ResultsStore) -> None:
    with pytest.raises(LookupError):
        store.read(list_runs, REPOSITORY, last_listed=Upload(1, {}).run.key)
