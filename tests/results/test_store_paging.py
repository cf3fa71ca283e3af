"""Runs, listed page by page."""

from __future__ import annotations

import pytest

from bot.results.store.store import ResultsStore
from tests.results.uploads import LAB, REPOSITORY, Upload


def test_pages_hold_each_run_once_though_all_came_at_one_moment(store: ResultsStore) -> None:
    for number in range(7):
        store.put(Upload(number, {"a.py::test": "passed"}).run, Upload(number, {"a.py::test": "passed"}).columns)
    pages = [store.runs(REPOSITORY, limit=3)]
    while pages[-1]:
        pages.append(store.runs(REPOSITORY, lab=LAB, limit=3, before=pages[-1][-1].key))
    assert [len(page) for page in pages] == [3, 3, 1, 0]
    assert [run for page in pages for run in page] == store.runs()
    assert len({run.key for page in pages for run in page}) == 7


def test_a_page_behind_a_run_that_is_not_known_is_no_page(store: ResultsStore) -> None:
    with pytest.raises(LookupError):
        store.runs(REPOSITORY, before=Upload(1, {}).run.key)
