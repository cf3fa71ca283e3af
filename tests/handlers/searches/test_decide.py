"""What the end of a job says about its commit, and which search a request means."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handlers.device_tests.model import DeviceJobState, JobEnd
from handlers.searches.decide import settled
from handlers.searches.records import (
    SEARCHED_TEST,
    AskedRun,
    CulpritSearch,
    SearchRequest,
    SearchRunState,
    searched_test_key,
)
from tests.handlers.device_tests.cases import NOW, few_tests_job

ASKED = AskedRun(1, 5, "example-lab/hexagon-v73", 3, NOW)
REQUEST = SearchRequest("operators", ("a", "b"), ("example-lab/hexagon-v73",), "a" * 40, "b" * 40)
SEARCH = CulpritSearch(REQUEST, (), {}, NOW)


@pytest.mark.parametrize("end", JobEnd)
def test_only_a_lab_that_tried_says_that_a_commit_gives_no_results(end: JobEnd) -> None:
    job = replace(few_tests_job("search:1:1"), state=DeviceJobState.ENDED, end=end, ended_at=NOW)
    tried = end in {JobEnd.NONE, JobEnd.LAB_FAILED, JobEnd.TOO_LONG}
    assert settled(SEARCH, ASKED, job, NOW).state is (SearchRunState.NO_RESULTS if tried else SearchRunState.LOST)


def test_a_search_for_failures_keeps_the_id_it_had_before_measurements_were_searched() -> None:
    assert REQUEST.id == "3b2babee687e"
    assert replace(REQUEST, measurement="latency").id != REQUEST.id


def test_each_test_of_a_suite_on_a_target_of_a_repository_has_its_own_newest_search() -> None:
    test = (5, "example-lab/hexagon-v73", "operators", "a")
    others = [(6, *test[1:]), (5, "example-lab/mali", *test[2:]), (*test[:2], "relax", "a"), (*test[:3], "b")]
    assert len({searched_test_key(*parts) for parts in (test, *others)}) == 5
    assert searched_test_key(*test) == SEARCHED_TEST.of(5, "2a4cae7d05401a5b562f2f4a")
